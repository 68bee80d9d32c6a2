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
	"strings"
)

// ErrDoesNotCompile is returned by Build when the compiler refused the operator. What the compiler said was written
// already.
var ErrDoesNotCompile = errors.New("the operator does not compile")

// Build compiles the operator and returns the path of the program. It is kept in the user's cache, so that building
// again without a change takes no time. The name of each package that is compiled is given to progress; what the
// compiler complains about is written to complaints, as it is.
func (p *Project) Build(ctx context.Context, progress func(string), complaints io.Writer) (string, error) {
	program, err := p.program()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-o", program, "--", p.pattern)
	cmd.Dir = p.workDir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	words := &buildOutput{progress: progress}
	cmd.Stderr = words
	cmd.SysProcAttr = ownProcessGroup()
	err = cmd.Run()
	words.finish()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return program, nil
	case ctx.Err() == nil && errors.As(err, &exit) && words.complaints.Len() > 0:
		if _, err := complaints.Write(words.complaints.Bytes()); err != nil {
			return "", fmt.Errorf("writing what the compiler said: %w", err)
		}
		return "", ErrDoesNotCompile
	default:
		return "", goError(ctx, "building the operator", err, words.complaints.String())
	}
}

// program is the path of the compiled operator: the same for the same directory.
func (p *Project) program() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache directory: %w", err)
	}
	sum := sha256.Sum256([]byte(p.Dir))
	dir := filepath.Join(cache, "ctrlkit", "run", hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a directory for the operator: %w", err)
	}
	return filepath.Join(dir, p.Name()), nil
}

// buildOutput tells the names of packages, which "go build -v" prints one to a line, from everything else it prints.
type buildOutput struct {
	progress   func(string)
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
			fmt.Fprintf(&o.complaints, "%s\n", text)
		}
	}
}

func (o *buildOutput) finish() {
	if len(o.unfinished) > 0 {
		_, _ = o.Write([]byte("\n")) // it cannot fail
	}
}
