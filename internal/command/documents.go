// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// usageError returns an error that ends the command with the exit code for wrong usage.
func usageError(err error) error { return &exitError{code: exitUsage, err: err} }

// problemError returns an error of a command's work.
func problemError(err error) error { return &exitError{code: exitFound, err: err} }

// findDocuments returns the documents that the arguments name, each once, sorted: files, the
// documents in directories, and for DIR/... those in all directories below DIR.
func findDocuments(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		found, err := documentsOf(arg)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// inputName is the name of a document from standard input.
const inputName = "<stdin>"

// readInput reads the document from standard input, and reports whether the arguments ask for that.
func readInput(args []string, stdin io.Reader) ([]byte, bool, error) {
	if !slices.Contains(args, "-") {
		return nil, false, nil
	}
	if len(args) > 1 {
		return nil, true, usageError(errors.New("standard input (-) cannot be combined with files"))
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return nil, true, problemError(fmt.Errorf("reading standard input: %w", err))
	}
	return text, true, nil
}

func documentsOf(arg string) ([]string, error) {
	root, below := strings.CutSuffix(filepath.ToSlash(arg), "/...")
	if arg == "..." {
		root, below = ".", true
	}
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usageError(fmt.Errorf("%s: no such file or directory", root))
	case err != nil:
		return nil, problemError(err)
	case !info.IsDir():
		return []string{filepath.Clean(arg)}, nil
	}
	files, err := documentsIn(root, below)
	if err != nil {
		return nil, problemError(err)
	}
	if len(files) == 0 {
		return nil, usageError(fmt.Errorf("%s: %w", arg, check.ErrNoDocuments))
	}
	return files, nil
}

// isSkipped reports whether DIR/... skips directories of this name. The rules are those of the go
// command.
func isSkipped(name string) bool {
	return name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_'
}

// documentsIn lists the documents in a directory and, if below, in the directories below it that
// are not skipped.
func documentsIn(root string, below bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (!below || isSkipped(name)) {
				return fs.SkipDir
			}
			return nil
		}
		if check.IsDocument(name) {
			files = append(files, filepath.Clean(path))
		}
		return nil
	})
	return files, err
}

// styleFor returns a style with colors if w is a terminal and NO_COLOR is not set
// (https://no-color.org).
func styleFor(w io.Writer) diag.Style {
	f, ok := fileOf(w)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return diag.Plain
	}
	return diag.Color
}
