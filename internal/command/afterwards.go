// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// afterwards is what follows when the files of a project have been written: the programs that
// complete them, of which go mod tidy is the first.
type afterwards struct {
	make     bool   // make generate manifests
	document string // the directory with a document, for which Go is generated
}

func (a afterwards) String() string {
	commands := []string{"go mod tidy"}
	if a.make {
		commands = append(commands, "make generate manifests (deep copies, config/crd/bases, config/rbac/role.yaml)")
	}
	if a.document != "" {
		commands = append(commands, "ctrlkit generate (the Go of the document)")
	}
	return strings.Join(commands, ", ")
}

// do runs the programs in a directory. An error says what is left to do.
func (a afterwards) do(ctx context.Context, dir string, out io.Writer) error {
	if err := runProgram(ctx, dir, out, "go", "mod", "tidy"); err != nil {
		return fmt.Errorf("completing go.mod: %w\nThe files are written. Run the command again when the cause is gone", err)
	}
	if a.make {
		if err := runProgram(ctx, dir, out, "make", "generate", "manifests"); err != nil {
			return fmt.Errorf("generating deep copies, definitions and the role: %w\nThe files are written. Run make generate manifests when the cause is gone", err)
		}
	}
	if a.document != "" {
		start := time.Now()
		g := &generator{loader: check.NewCache(check.GoLoader{}), out: io.Discard, problems: out}
		if err := g.run(ctx, []string{a.document}); err != nil {
			return fmt.Errorf("generating the Go of the document: %w", err)
		}
		fmt.Fprintf(out, "✓ ctrlkit generate (%.1fs)\n", time.Since(start).Seconds())
	}
	return nil
}

// runProgram runs a program in a directory. It says what runs, how long that took, and what was
// printed if the program fails.
func runProgram(ctx context.Context, dir string, out io.Writer, name string, args ...string) error {
	title := strings.Join(append([]string{name}, args...), " ")
	progress := &programOutput{title: title, start: time.Now()}
	if isTerminal(out) {
		progress.live = out
	}
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "PWD="+absolute(dir))
	command.Stdout, command.Stderr = progress, progress
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	progress.show("")
	err := command.Run()
	progress.clear()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("%s is not installed: %w", name, err)
		}
		return fmt.Errorf("%s: %w\n%s", title, err, strings.TrimSpace(progress.all.String()))
	}
	downloads := ""
	if progress.downloads > 0 {
		downloads = fmt.Sprintf(", %d modules downloaded", progress.downloads)
	}
	fmt.Fprintf(out, "✓ %s (%.1fs%s)\n", title, time.Since(progress.start).Seconds(), downloads)
	return nil
}

func absolute(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return abs
}

// programOutput is what a program prints. In a terminal the last line is shown while it runs.
type programOutput struct {
	title     string
	start     time.Time
	live      io.Writer // nil if nothing is shown
	all       bytes.Buffer
	downloads int
}

func (p *programOutput) Write(text []byte) (int, error) {
	p.downloads += bytes.Count(text, []byte("go: downloading "))
	if line := strings.TrimSpace(string(text)); line != "" {
		p.show(line[strings.LastIndexByte(line, '\n')+1:])
	}
	return p.all.Write(text)
}

func (p *programOutput) show(line string) {
	if p.live == nil {
		return
	}
	if len(line) > 60 {
		line = line[:60]
	}
	fmt.Fprintf(p.live, "\r\x1b[K… %s  %s", p.title, line)
}

func (p *programOutput) clear() {
	if p.live != nil {
		fmt.Fprint(p.live, "\r\x1b[K")
	}
}
