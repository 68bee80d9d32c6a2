// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// A Change is a file before and after.
type Change struct {
	Path     string // in the project, with slashes
	Old, New []byte // Old is nil for a new file

	// Extends says that New is Old with additions. Otherwise New replaces it.
	Extends bool
}

// A Plan is what will be written in a directory.
type Plan struct {
	Dir     string
	Changes []Change // sorted by path; files that stay as they are have none

	// Notes say what the plan could not do, and what a person can do instead.
	Notes []string

	// Upgrade says to which version of controller-runtime the go command moves the whole project, because
	// ctrlkit requires it; empty if the project has it, or a later one.
	Upgrade string
}

// add adds a file, unless it is there with this content.
func (p *Plan) add(name string, content []byte) error {
	old, err := readIfThere(p.Dir, name)
	if err != nil {
		return err
	}
	p.note(Change{Path: name, Old: old, New: content})
	return nil
}

func (p *Plan) note(c Change) {
	if c.Old != nil && bytes.Equal(c.Old, c.New) {
		return
	}
	p.Changes = append(p.Changes, c)
	slices.SortFunc(p.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
}

// readIfThere returns the content of a file, nil if there is none.
func readIfThere(dir, name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking what is there: %w", err)
	}
	if content == nil {
		content = []byte{}
	}
	return content, nil
}

// Conflicts returns the files that exist with another content, and would be replaced.
func (p *Plan) Conflicts() []string {
	var paths []string
	for _, c := range p.Changes {
		if c.Old != nil && !c.Extends {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// Has reports whether the plan changes a file.
func (p *Plan) Has(path string) bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Path == path })
}

// Summary returns a line for each change: whether the file is new, extended or replaced.
func (p *Plan) Summary() string {
	var text strings.Builder
	for _, c := range p.Changes {
		word := "new"
		switch {
		case c.Old != nil && c.Extends:
			word = "extended"
		case c.Old != nil:
			word = "replaced"
		}
		fmt.Fprintf(&text, "  %-9s %s\n", word, c.Path)
	}
	return text.String()
}

// Diff writes the changes as one diff, which git apply accepts.
func (p *Plan) Diff(w io.Writer, colors bool) error {
	for _, c := range p.Changes {
		from := "a/" + c.Path
		if c.Old == nil {
			from = "/dev/null"
		}
		text := diff.Diff(from, c.Old, "b/"+c.Path, c.New)
		if colors {
			text = paint(text)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// paint colors the lines of a diff as git does.
func paint(text []byte) []byte {
	var painted bytes.Buffer
	for line := range bytes.Lines(text) {
		color := ""
		switch {
		case bytes.HasPrefix(line, []byte("diff ")), bytes.HasPrefix(line, []byte("--- ")), bytes.HasPrefix(line, []byte("+++ ")):
			color = "1"
		case line[0] == '@':
			color = "36"
		case line[0] == '+':
			color = "32"
		case line[0] == '-':
			color = "31"
		}
		if color == "" {
			painted.Write(line)
			continue
		}
		fmt.Fprintf(&painted, "\x1b[%sm%s\x1b[0m\n", color, bytes.TrimSuffix(line, []byte("\n")))
	}
	return painted.Bytes()
}

// Write writes the changes. It replaces also what [Plan.Conflicts] returns.
func (p *Plan) Write() error {
	for _, c := range p.Changes {
		name := filepath.Join(p.Dir, filepath.FromSlash(c.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, c.New, 0o644); err != nil {
			return err
		}
	}
	return nil
}
