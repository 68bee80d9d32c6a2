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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge"
)

// A merged run is the tests of some packages of the workspace, linked into one binary, of which
// each package is a process. What cannot be part of the binary runs with go test.
type merged struct {
	packages []string // their directories
	race     bool
	short    bool
	atOnce   int
	env      []string // of the tests, beside the environment of this process
}

// timeLimit is how long the tests of a package may take.
const timeLimit = 20 * time.Minute

// A building is a merged run whose binary is being built.
type building struct {
	merged
	known *passed

	done    chan struct{} // closed when the rest is there
	results []result      // of the packages that need not run
	binary  *merge.Binary // nil if none needs to
	err     error
}

// begin begins to build the binary. The links of several binaries can share the processors, of
// which each uses one.
func (m merged) begin(ctx context.Context, out io.Writer, known *passed) *building {
	b := &building{merged: m, known: known, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.err = b.prepare(ctx, out)
	}()
	return b
}

func (b *building) prepare(ctx context.Context, out io.Writer) error {
	begin := time.Now()
	results, err := b.unchanged(out, b.known)
	if err != nil || len(results) == len(b.packages) {
		b.results = results
		return err
	}
	b.results, b.packages = results, without(b.packages, results)
	all, err := merge.List(ctx, everything...)
	if err != nil {
		return err
	}
	binary, err := b.build(ctx, all)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "built the tests in %s, with %s of processor time\n", time.Since(begin).Round(time.Second), binary.Spent.Round(time.Second))
	b.binary = binary
	return nil
}

// run runs the tests when the binary is there, with variables beside the environment of this
// process.
func (b *building) run(ctx context.Context, out io.Writer, env ...string) ([]result, error) {
	<-b.done
	if b.err != nil || b.binary == nil {
		return b.results, b.err
	}
	b.env = env
	more, err := b.runAll(ctx, out, b.binary, b.known)
	return append(b.results, more...), errors.Join(err, b.known.write())
}

// without returns the packages that have no result.
func without(packages []string, results []result) []string {
	return slices.DeleteFunc(slices.Clone(packages), func(dir string) bool {
		return slices.ContainsFunc(results, func(r result) bool { return r.Package == importPath(dir) })
	})
}

// memoryOfPassed is the file that remembers which tests have passed.
const memoryOfPassed = "bin/passed.json"

// unchanged returns what became of the packages whose tests have passed and have not changed since.
func (m merged) unchanged(out io.Writer, known *passed) ([]result, error) {
	if err := known.learn(m.packages); err != nil || strings.Contains(os.Getenv("GOFLAGS"), "-count=") {
		return nil, err
	}
	var results []result
	for _, dir := range m.packages {
		if known.unchanged(m.key(dir), dir) {
			results = append(results, result{Package: importPath(dir), Race: m.race, Passed: true})
		}
	}
	fmt.Fprintf(out, "unchanged since they passed: %d of %d packages\n", len(results), len(m.packages))
	return results, nil
}

// key names the tests of a package in the memory.
func (m merged) key(dir string) string {
	return fmt.Sprintf("%s race=%t short=%t", dir, m.race, m.short)
}

// build builds the binary. It has the tests of all packages, whichever are to run, so that the
// rings share what the compiler has done; with the race detector, those of the packages for which
// it is used.
func (m merged) build(ctx context.Context, all []*merge.Package) (*merge.Binary, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	o := merge.Options{Module: module, Root: root, Dir: filepath.Join(root, "bin", "tests")}
	if m.race {
		o.Dir += "-race"
		o.Flags = append(o.Flags, "-race")
	}
	return merge.Build(ctx, o, all, func(p *merge.Package) bool {
		dir := localName(p.ImportPath)
		return !slices.Contains(alone, dir) && (!m.race || slices.Contains(raced, dir) || slices.Contains(racedLater, dir))
	})
}

// runAll runs the packages, some at once, and prints what becomes of each.
func (m merged) runAll(ctx context.Context, out io.Writer, binary *merge.Binary, known *passed) ([]result, error) {
	tool, err := exec.CommandContext(ctx, "go", "tool", "-n", "test2json").Output()
	if err != nil {
		return nil, fmt.Errorf("go tool test2json: %w", err)
	}
	begin := time.Now()
	var spent sync.Map // by package
	read, write := io.Pipe()
	go func() {
		todo := make(chan string)
		lines := &lineWriter{to: write}
		var workers sync.WaitGroup
		for range m.atOnce {
			workers.Go(func() {
				for dir := range todo {
					took, err := m.runPackage(ctx, strings.TrimSpace(string(tool)), &partOfLines{of: lines}, binary, dir, known)
					if err != nil {
						write.CloseWithError(err)
					}
					spent.Store(importPath(dir), took)
				}
			})
		}
		for _, dir := range m.order(binary) {
			todo <- dir
		}
		close(todo)
		workers.Wait()
		write.Close()
	}()
	results, err := goTest{race: m.race}.read(read, out)
	if err == nil && ctx.Err() == nil {
		results = append(results, m.missing(out, results)...)
	}
	var all time.Duration
	for i, r := range results {
		if took, ok := spent.Load(r.Package); ok {
			results[i].Spent = took.(time.Duration)
			all += results[i].Spent
		}
	}
	fmt.Fprintf(out, "%d packages in %s, with %s of processor time\n", len(results), time.Since(begin).Round(time.Second), all.Round(time.Second))
	return results, cmp.Or(ctx.Err(), err)
}

// missing returns the packages that have no result as failed ones.
func (m merged) missing(out io.Writer, results []result) []result {
	var missing []result
	for _, dir := range without(m.packages, results) {
		r := result{Package: importPath(dir), Race: m.race}
		fmt.Fprintln(out, "The tests have ended without a result:")
		r.print(out)
		missing = append(missing, r)
	}
	return missing
}

// order returns the packages, those first that are not in the binary, because they have to be
// linked.
func (m merged) order(binary *merge.Binary) []string {
	inBinary := func(dir string) bool { return binary.Has(importPath(dir)) }
	return slices.Concat(slices.DeleteFunc(slices.Clone(m.packages), inBinary),
		slices.DeleteFunc(slices.Clone(m.packages), func(dir string) bool { return !inBinary(dir) }))
}

// runPackage runs the tests of a package, and writes the events of go test -json. It returns the
// processor time that they took.
func (m merged) runPackage(ctx context.Context, tool string, events io.Writer, binary *merge.Binary, dir string, known *passed) (spent time.Duration, err error) {
	limit, short := "timeout="+timeLimit.String(), fmt.Sprintf("short=%t", m.short)
	if !binary.Has(importPath(dir)) {
		test := exec.CommandContext(ctx, "go", "test", "-json", fmt.Sprintf("-race=%t", m.race), "-"+limit, "-"+short, dir)
		test.Env, test.Stdout, test.Stderr = append(os.Environ(), m.env...), events, os.Stderr
		return start(test)
	}
	log, err := os.CreateTemp("", "testlog")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(log.Name())) }()
	log.Close()
	test, err := binary.Command(ctx, importPath(dir), "-test.v=test2json", "-test.paniconexit0", "-test.testlogfile="+log.Name(), "-test."+limit, "-test."+short)
	if err != nil {
		return 0, err
	}
	test.Env = append(test.Env, m.env...)
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer read.Close()
	test.Stdout, test.Stderr = write, write
	convert := exec.Command(tool, "-t", "-p", importPath(dir))
	convert.Stdin, convert.Stdout, convert.Stderr = read, events, os.Stderr
	if err := convert.Start(); err != nil {
		return 0, errors.Join(err, write.Close())
	}
	begin := time.Now()
	verdict := "ok  "
	defer func() { err = errors.Join(err, write.Close(), convert.Wait()) }()
	switch spent, err = start(test); {
	case err == nil && test.ProcessState.Success():
		err = known.note(m.key(dir), dir, log.Name())
	case err == nil: // as go test ends what it prints
		verdict = marker + "FAIL"
		fmt.Fprintln(write, test.ProcessState)
	}
	fmt.Fprintf(write, "%s\t%s\t%.3fs\n", verdict, importPath(dir), time.Since(begin).Seconds())
	return spent, err
}

// marker begins a line that test2json is to read although a test may be running, whose process has
// crashed.
const marker = "\x16"

// start runs a test that may fail, and returns the processor time that it took.
func start(test *exec.Cmd) (spent time.Duration, err error) {
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) }
	test.WaitDelay = time.Minute
	err = test.Run()
	if s := test.ProcessState; s != nil {
		return s.UserTime() + s.SystemTime(), nil
	}
	return 0, err
}

// importPath is the opposite of localName.
func importPath(dir string) string { return module + strings.TrimPrefix(dir, ".") }

// A lineWriter writes whole lines of several programs to one place.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

// partOfLines writes those of one of them.
type partOfLines struct {
	of   *lineWriter
	rest []byte // of a line that has not ended
}

func (p *partOfLines) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if _, err := p.of.to.Write(p.rest[:end]); err != nil {
		return 0, err
	}
	p.rest = p.rest[end:]
	return len(b), nil
}
