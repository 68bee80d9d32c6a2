// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Build compiles packages, and says how far it is. It is used for one run.
type Build struct {
	// Command prepares a call of the go command. The result is interrupted when ctx ends.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	// Flags are those that decide which packages are compiled, and how.
	Flags []string

	// Packages are patterns.
	Packages []string

	// Words receives the output that is not the name of a package: errors of the compiler, and the
	// modules that are downloaded.
	Words io.Writer

	progress progress
}

// Run calls "go build" with the flags, and further ones such as -o. During a build that takes long,
// it counts the packages: that costs as much as a build in which nothing is compiled.
func (b *Build) Run(ctx context.Context, flags ...string) error {
	surveying, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		select {
		case <-time.After(WhenSlow):
			b.survey(surveying)
		case <-surveying.Done():
		}
	})
	args := append([]string{"build", "-v"}, b.Flags...)
	args = append(append(args, flags...), "--")
	command := b.Command(ctx, append(args, b.Packages...)...)
	names := &lines{each: b.heard}
	command.Stderr = names
	err := command.Run()
	names.end()
	return err
}

// heard takes a line of the output of "go build -v".
func (b *Build) heard(line string) {
	if isPackagePath(line) {
		b.progress.start(line)
		return
	}
	if strings.HasPrefix(line, "go: downloading ") {
		b.progress.download()
	}
	fmt.Fprintln(b.Words, line)
}

// isPackagePath reports whether a line is a package path. Messages of compilers and linkers have
// spaces, colons, tabs or a leading #.
func isPackagePath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :\t#")
}

// survey counts the packages that are to be compiled. It ignores errors, which go build finds, too.
func (b *Build) survey(ctx context.Context) {
	args := append([]string{"list", "-deps", "-f", asked}, b.Flags...)
	command := b.Command(ctx, append(append(args, "--"), b.Packages...)...)
	if output, err := command.Output(); err == nil {
		b.progress.plan(readSurvey(string(output)))
	}
}

// asked is what go list prints of each package. Main packages are stale even if they are compiled, as
// long as they are not installed.
const asked = `{{if and .Stale (ne .Name "main")}}stale{{else}}-{{end}} {{len .Imports}} {{.ImportPath}}`

// A listed package is one that a build needs.
type listed struct {
	path    string
	stale   bool
	imports int
}

func readSurvey(output string) []listed {
	var packages []listed
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		imports, _ := strconv.Atoi(fields[1]) // go list prints a number
		packages = append(packages, listed{path: fields[2], stale: fields[0] == "stale", imports: imports})
	}
	return packages
}

// String says how far the build is.
func (b *Build) String() string { return b.progress.String() }

// lines calls each with every line that is written.
type lines struct {
	each    func(line string)
	partial []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, partial, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.partial = partial
		l.each(string(line))
	}
}

// end passes on a line that was not ended.
func (l *lines) end() {
	if len(l.partial) > 0 {
		l.each(string(l.partial))
		l.partial = nil
	}
}
