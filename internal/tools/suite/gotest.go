// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A goTest is one call of go test.
type goTest struct {
	dir  string   // of the module
	race bool     // what is read is of tests with the race detector
	env  []string // beside the environment of this process
	args []string
}

// A result is what became of the tests of a package.
type result struct {
	Package string        `json:"package"`
	Race    bool          `json:"race,omitempty"`
	Passed  bool          `json:"passed"`
	Skipped bool          `json:"-"` // it has no tests
	Elapsed time.Duration `json:"elapsed"`
	Spent   time.Duration `json:"spent,omitempty"` // processor time; 0 where it is not known
}

// An event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// run runs the tests, and prints a line for each package, the output of those that failed, and what
// they took: on a busy machine, only the processor time says whether they have become slower. That of
// the shared control plane is not in it.
func (g goTest) run(ctx context.Context, out io.Writer) ([]result, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, g.args...)...)
	command.Dir, command.Env = g.dir, append(os.Environ(), g.env...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	begin := time.Now()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	results, read := g.read(stdout, out)
	err = command.Wait()
	spent := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	fmt.Fprintf(out, "%d packages in %s, with %s of processor time\n", len(results), time.Since(begin).Round(time.Second), spent.Round(time.Second))
	switch {
	case ctx.Err() != nil:
		return results, fmt.Errorf("stopped: %w", context.Cause(ctx))
	case read != nil:
		return results, read
	case err != nil && !slices.ContainsFunc(results, func(r result) bool { return !r.Passed }):
		return results, fmt.Errorf("go %s: %w\n%s", strings.Join(command.Args[1:], " "), err, stderr.String())
	}
	return results, nil
}

// read reads the events of go test until they end.
func (g goTest) read(events io.Reader, out io.Writer) ([]result, error) {
	var results []result
	output := map[string][]string{} // by package, and by package and test
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return results, nil
		} else if err != nil {
			return results, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return results, fmt.Errorf("reading what go test prints: %w: %s", err, line)
		}
		name := cmp.Or(e.Package, e.ImportPath)
		switch {
		case e.Action == "output" || e.Action == "build-output":
			output[name+" "+e.Test] = append(output[name+" "+e.Test], e.Output)
		case e.Test != "" && e.Action == "fail":
			fmt.Fprintf(out, "%s", strings.Join(output[name+" "+e.Test], ""))
			delete(output, name+" "+e.Test)
		case e.Test != "" && (e.Action == "pass" || e.Action == "skip"):
			delete(output, name+" "+e.Test)
		case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			r := result{Package: name, Race: g.race, Passed: e.Action != "fail", Skipped: e.Action == "skip", Elapsed: time.Duration(e.Elapsed * float64(time.Second))}
			if !r.Passed {
				g.fail(out, e, output)
			}
			results = append(results, r)
			r.print(out)
		}
	}
}

// fail prints why a package failed beside its tests: a build, a panic, a time limit, and what tests
// have printed that have not ended.
func (g goTest) fail(out io.Writer, e event, output map[string][]string) {
	for key, lines := range output {
		if name, _, _ := strings.Cut(key, " "); name == e.Package || name == e.FailedBuild {
			fmt.Fprint(out, strings.Join(lines, ""))
		}
	}
}

func (r result) print(out io.Writer) {
	word := "ok  "
	switch {
	case r.Skipped:
		return
	case !r.Passed:
		word = "FAIL"
	}
	fmt.Fprintf(out, "%s %6.1fs  %s\n", word, r.Elapsed.Seconds(), r.name())
}

const module = "github.com/ctrlkit/ctrlkit"

// name is the package as one says it: without the name of the module.
func (r result) name() string {
	name := localName(r.Package)
	if r.Race {
		name += " (-race)"
	}
	return name
}
