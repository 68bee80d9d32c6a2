// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge"
)

// explorer is the third ring.
type explorer struct {
	out    io.Writer
	budget time.Duration
	seed   string
	shard  string
	only   string
	memory string
	list   bool

	known  memory
	code   map[string]string // of each package, a hash of what its tests are made of
	binary binary
	ran    int
	failed []part
}

// A binary has the tests of many packages; see merge.Binary.
type binary interface {
	Has(importPath string) bool
	Command(ctx context.Context, importPath string, args ...string) (*exec.Cmd, error)
}

// grace is how much longer than the budget a part may take before it is interrupted.
const grace = time.Minute

func (e *explorer) run(ctx context.Context) error {
	parts, err := e.plan()
	if err != nil {
		return err
	}
	if e.list {
		for _, p := range parts {
			fmt.Fprintln(e.out, p.key())
		}
		return nil
	}
	begin := time.Now()
	if e.binary, err = e.build(ctx); err != nil {
		return err
	}
	left, err := e.runAll(ctx, parts, begin.Add(e.budget))
	if err != nil {
		return err
	}
	e.summarize(left, time.Since(begin))
	if len(e.failed) > 0 {
		return errFailed
	}
	return nil
}

// plan returns the parts of this exploration, the most valuable first.
func (e *explorer) plan() ([]part, error) {
	parts, err := parseTable(table)
	if err != nil {
		return nil, err
	}
	if e.only != "" {
		pattern, err := regexp.Compile(e.only)
		if err != nil {
			return nil, fmt.Errorf("-only: %w", err)
		}
		parts = slices.DeleteFunc(parts, func(p part) bool { return !pattern.MatchString(p.key()) })
	}
	if e.shard != "" {
		if parts, err = shardOf(parts, e.shard); err != nil {
			return nil, err
		}
	}
	if e.known, err = readMemory(e.memory); err != nil {
		return nil, err
	}
	var dirs []string
	for _, p := range parts {
		if !slices.Contains(dirs, p.dir) {
			dirs = append(dirs, p.dir)
		}
	}
	if e.code, err = hashes(dirs); err != nil {
		return nil, err
	}
	known, seed := e.known, e.seed
	if seed == "" {
		seed = strconv.FormatInt(time.Now().UnixNano(), 36)
	} else {
		known = memory{} // the same order, whatever was run
	}
	e.seed = seed
	known.order(parts, seed, func(p part) string { return e.code[p.dir] })
	return parts, nil
}

// shardOf returns the i-th of n parts of a list.
func shardOf(parts []part, shard string) ([]part, error) {
	var i, n int
	if _, err := fmt.Sscanf(shard, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		return nil, fmt.Errorf("-shard: %q is not of the form 2/4", shard)
	}
	var mine []part
	for j, p := range parts {
		if j%n == i-1 {
			mine = append(mine, p)
		}
	}
	return mine, nil
}

// runAll runs parts until the deadline, and returns those that were left. A part that is expected to
// take longer than the time that remains is left, too.
func (e *explorer) runAll(ctx context.Context, parts []part, deadline time.Time) (left []part, err error) {
	for i, p := range parts {
		if ctx.Err() != nil {
			return append(left, parts[i:]...), nil
		}
		if e.known.expected(p) > time.Until(deadline) && (i > 0 || time.Now().After(deadline)) {
			left = append(left, p)
			continue
		}
		done, err := e.runPart(ctx, p, deadline)
		if err != nil {
			return nil, err
		}
		if !done {
			left = append(left, p)
		}
	}
	return left, nil
}

// runPart runs a part, prints what became of it, and remembers it. It reports whether the part ended
// by itself.
func (e *explorer) runPart(ctx context.Context, p part, deadline time.Time) (done bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(grace))
	defer cancel()
	output, passed, elapsed, err := e.execute(ctx, p)
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		fmt.Fprintf(e.out, "cut  %6.1fs  %s\n", elapsed.Seconds(), p.key())
		return false, nil
	}
	e.ran++
	e.known[p.key()] = entry{Code: e.code[p.dir], Passed: passed, Seconds: elapsed.Seconds(), At: time.Now().UTC().Truncate(time.Second)}
	if err := e.known.write(e.memory); err != nil {
		return false, err
	}
	if passed {
		fmt.Fprintf(e.out, "ok   %6.1fs  %s\n", elapsed.Seconds(), p.key())
		return true, nil
	}
	e.failed = append(e.failed, p)
	fmt.Fprintf(e.out, "%s\nFAIL %6.1fs  %s\n     again: %s\n", lastLines(output, 200), elapsed.Seconds(), p.key(), e.again(p))
	return true, nil
}

// build builds the tests of all packages with parts, as make test does.
func (e *explorer) build(ctx context.Context) (*merge.Binary, error) {
	all, err := merge.List(ctx, everything...)
	if err != nil {
		return nil, err
	}
	return merged{}.build(ctx, all)
}

// execute runs a part. Fuzzing needs the go command, which instruments the code.
func (e *explorer) execute(ctx context.Context, p part) (output []byte, passed bool, elapsed time.Duration, err error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test"}, p.arguments(e.seed)...)...)
	command.Dir, command.Env = p.dir, os.Environ()
	if !slices.Contains(p.flags, "-fuzz") && e.binary.Has(importPath(p.dir)) {
		if command, err = e.binary.Command(ctx, importPath(p.dir), binaryFlags(p.arguments(e.seed))...); err != nil {
			return nil, false, 0, err
		}
	}
	command.Env = append(command.Env, rings.Variable+"=1")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	var buffer bytes.Buffer
	command.Stdout, command.Stderr = &buffer, &buffer
	begin := time.Now()
	err = command.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return nil, false, 0, err
	}
	if err == nil && bytes.Contains(buffer.Bytes(), []byte("no tests to run")) {
		return []byte("no test matches: mend explorations.txt\n"), false, time.Since(begin), nil
	}
	return buffer.Bytes(), err == nil, time.Since(begin), nil
}

// testFlags are the flags of go test that a test binary knows by another name.
var testFlags = []string{"-run", "-skip", "-timeout", "-v", "-short", "-count", "-cpu", "-parallel"}

// binaryFlags returns flags of go test as the test binary knows them.
func binaryFlags(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if name, _, _ := strings.Cut(arg, "="); slices.Contains(testFlags, name) {
			args[i] = "-test." + arg[1:]
		}
	}
	return args
}

// again returns the line that runs a part again.
func (e *explorer) again(p part) string {
	words := []string{rings.Variable + "=1", "go", "test"}
	for _, arg := range append([]string{p.dir}, p.arguments(e.seed)...) {
		if strings.ContainsAny(arg, "^$|()*[]{} ") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// lastLines returns the end of what a test has printed.
func lastLines(output []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimRight(output, "\n"), []byte("\n"))
	if len(lines) <= n {
		return output
	}
	return bytes.Join(append([][]byte{[]byte("[...]")}, lines[len(lines)-n:]...), []byte("\n"))
}

// summarize says what was found, and what was not run.
func (e *explorer) summarize(left []part, elapsed time.Duration) {
	fmt.Fprintf(e.out, "\nexplored for %s, with -seed %s\n", elapsed.Round(time.Second), e.seed)
	if len(left) > 0 {
		fmt.Fprintf(e.out, "not run, of %d parts: %d\n", e.ran+len(left), len(left))
		count := map[string]int{}
		for _, p := range left {
			count[p.dir+" "+p.exploration()]++
		}
		names := make([]string, 0, len(count))
		for name := range count {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
		for _, name := range names {
			fmt.Fprintf(e.out, "  %4d  %s\n", count[name], name)
		}
	}
	fmt.Fprintf(e.out, "parts: %d passed, %d failed\n", e.ran-len(e.failed), len(e.failed))
	for _, p := range e.failed {
		fmt.Fprintf(e.out, "FAIL %s\n     again: %s\n", p.key(), e.again(p))
	}
}
