// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// ErrDoesNotCompile is returned by Build if the compiler refused the operator. The compiler's
// output has already been written.
var ErrDoesNotCompile = errors.New("the operator does not compile")

// Build compiles the operator and returns the path of the program. The program stays in the user's
// cache, so that a build without changes is fast. Build calls progress with the name of each
// compiled package and writes the compiler's errors to complaints.
func (p *Project) Build(ctx context.Context, progress func(string), complaints io.Writer) (string, error) {
	program, err := p.program()
	if err != nil {
		return "", err
	}
	// Like go run, it asks no version control: a repository without commits would stop it.
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-buildvcs=false", "-o", program, "--", p.pattern)
	cmd.Dir = p.workDir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	words := &buildOutput{progress: progress, dir: p.workDir}
	cmd.Stderr = words
	cmd.SysProcAttr = supervisor.OwnProcessGroup()
	err = cmd.Run()
	words.finish()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return program, nil
	case ctx.Err() == nil && errors.As(err, &exit) && words.complaints.Len() > 0:
		if _, err := complaints.Write(words.complaints.Bytes()); err != nil {
			return "", fmt.Errorf("writing the compiler's errors: %w", err)
		}
		return "", ErrDoesNotCompile
	default:
		return "", goError(ctx, "building the operator", err, words.complaints.String())
	}
}

// program returns the path of the compiled operator, which depends only on its directory.
func (p *Project) program() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache directory: %w", err)
	}
	sum := sha256.Sum256([]byte(p.Dir))
	dir := filepath.Join(cache, "ctrlkit", "run", hex.EncodeToString(sum[:6]))
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700) //nolint:gosec // a directory: the permissions of the program are up to the linker
	}
	if err != nil {
		return "", fmt.Errorf("creating a directory for the operator: %w", err)
	}
	return filepath.Join(dir, p.Name()), nil
}

// buildOutput separates the names of packages, which "go build -v" prints one per line, from its
// other output.
type buildOutput struct {
	progress   func(string)
	dir        string // in which the go command runs
	complaints bytes.Buffer
	unfinished []byte
}

func (o *buildOutput) Write(data []byte) (int, error) {
	o.unfinished = append(o.unfinished, data...)
	for {
		text, rest, found := bytes.Cut(o.unfinished, []byte("\n"))
		if !found {
			return len(data), nil
		}
		o.unfinished = rest
		if name := string(text); name != "" && !strings.ContainsAny(name, " \t:#") {
			o.progress(name)
		} else {
			fmt.Fprintf(&o.complaints, "%s\n", o.located(name))
		}
	}
}

// place matches the file at the beginning of a complaint, relative to where the go command runs.
var place = regexp.MustCompile(`^(\s*)([^\s:/][^\s:]*\.go)(:\d+.*)$`)

// located returns a complaint with its file relative to the working directory, as users name files.
func (o *buildOutput) located(complaint string) string {
	found := place.FindStringSubmatch(complaint)
	if found == nil || o.dir == "." {
		return complaint
	}
	file := filepath.Join(o.dir, found[2])
	if filepath.IsLocal(file) {
		file = "." + string(filepath.Separator) + file // as the go command writes it
	}
	return found[1] + file + found[3]
}

func (o *buildOutput) finish() {
	if len(o.unfinished) > 0 {
		_, _ = o.Write([]byte("\n")) // it cannot fail
	}
}
