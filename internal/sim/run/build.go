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

	"github.com/ctrlkit/ctrlkit/internal/gobuild"
)

// ErrDoesNotCompile is returned by Build if the compiler refused the operator. The compiler's
// output has already been written.
var ErrDoesNotCompile = errors.New("the operator does not compile")

// Build compiles the operator and returns the path of the program. The program stays in the user's
// cache, so that a build without changes is fast. Build shows its progress where [gobuild.Show] can,
// and writes the compiler's errors to complaints.
func (p *Project) Build(ctx context.Context, progress, complaints io.Writer) (string, error) {
	program, err := p.program()
	if err != nil {
		return "", err
	}
	var words bytes.Buffer
	// Like go run, it asks no version control: a repository without commits would stop it.
	build := &gobuild.Build{Command: p.goCommand, Flags: []string{"-buildvcs=false"}, Packages: []string{p.pattern}, Words: &words}
	stop := gobuild.Show(progress, gobuild.WhenSlow, "building "+p.name, build.String)
	err = build.Run(ctx, "-o", program)
	stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return program, nil
	case ctx.Err() == nil && errors.As(err, &exit) && words.Len() > 0:
		if _, err := io.WriteString(complaints, p.located(words.String())); err != nil {
			return "", fmt.Errorf("writing the compiler's errors: %w", err)
		}
		return "", ErrDoesNotCompile
	default:
		return "", goError(ctx, "building the operator", err, words.String())
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

// place matches the file at the beginning of a complaint, relative to where the go command runs.
var place = regexp.MustCompile(`^(\s*)([^\s:/][^\s:]*\.go)(:\d+.*\n)$`)

// located returns complaints with their files relative to the working directory, as users name them.
func (p *Project) located(complaints string) string {
	if p.workDir == "." {
		return complaints
	}
	var all strings.Builder
	for complaint := range strings.Lines(complaints) {
		found := place.FindStringSubmatch(complaint)
		if found == nil {
			all.WriteString(complaint)
			continue
		}
		file := filepath.Join(p.workDir, found[2])
		if filepath.IsLocal(file) {
			file = "." + string(filepath.Separator) + file // as the go command writes it
		}
		all.WriteString(found[1] + file + found[3])
	}
	return all.String()
}
