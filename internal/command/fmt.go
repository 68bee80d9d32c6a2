// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/format"
)

// formatOptions are the flags of `ctrlkit fmt`.
type formatOptions struct {
	list, diff, write bool
}

func newFmtCommand() *cobra.Command {
	var options formatOptions
	cmd := &cobra.Command{
		Use:   "fmt [flags] [file | directory | directory/...]...",
		Short: "Format documents",
		Long: `Format documents in their canonical layout.

Without a path, or with the path "-", fmt formats standard input. With paths it
prints the formatted documents, or does what -d, -l and -w say. It keeps all
comments. It prints syntax errors and does not change documents that have them.

With -d or -l, fmt exits with code 1 if a document is not formatted.`,
		Example: `  ctrlkit fmt -w ./...             # format all documents below this directory
  ctrlkit fmt -l ./...             # list those that are not formatted: for CI
  ctrlkit fmt -d cronjob.ctrlkit   # show what would change
  ctrlkit fmt < cronjob.ctrlkit    # from an editor`,
		RunE: func(cmd *cobra.Command, args []string) error {
			defer endOnInterrupt(cmd.Context())()
			return runFmt(cmd, args, options)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&options.diff, "diff", "d", false, "print differences instead of documents")
	flags.BoolVarP(&options.list, "list", "l", false, "print the names of documents that are not formatted")
	flags.BoolVarP(&options.write, "write", "w", false, "write the result to the files")
	return cmd
}

func runFmt(cmd *cobra.Command, args []string, options formatOptions) error {
	f := formatter{formatOptions: options, out: unchanged(cmd.OutOrStdout()), errOut: cmd.ErrOrStderr()}
	if len(args) == 0 || len(args) == 1 && args[0] == "-" {
		if options.write {
			return usageError(fmt.Errorf("-w cannot write to standard input: name files, or omit -w"))
		}
		src, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return problemError(fmt.Errorf("reading standard input: %w", err))
		}
		if err := f.format("<standard input>", src); err != nil {
			return problemError(err)
		}
		return f.result()
	}
	files, err := findDocuments(args)
	if err != nil {
		return err
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return problemError(fmt.Errorf("reading document: %w", err))
		}
		if err := f.format(file, src); err != nil {
			return problemError(err)
		}
	}
	return f.result()
}

// A formatter formats documents, and records whether there were findings.
type formatter struct {
	formatOptions
	out, errOut  io.Writer
	found, wrong bool
}

func (f *formatter) format(file string, src []byte) error {
	formatted, list := format.Source(file, src)
	if list.HasErrors() {
		f.wrong = true
		printer := diag.Printer{Sources: map[string][]byte{file: src}, Style: styleFor(f.errOut)}
		return printer.Print(f.errOut, list)
	}
	if !f.list && !f.diff && !f.write {
		_, err := f.out.Write(formatted)
		return err
	}
	if bytes.Equal(src, formatted) {
		return nil
	}
	f.found = true
	if f.list {
		if _, err := fmt.Fprintln(f.out, file); err != nil {
			return err
		}
	}
	if f.diff {
		if _, err := f.out.Write(diff.Diff(file+".orig", src, file, formatted)); err != nil {
			return err
		}
	}
	if !f.write {
		return nil
	}
	info, err := os.Stat(file)
	if real, linkErr := filepath.EvalSymlinks(file); linkErr == nil {
		file = real // replace what a link points to, not the link
	}
	if err == nil {
		err = replaceFile(file, formatted, info.Mode().Perm())
	}
	if err != nil {
		return fmt.Errorf("writing document: %w", err)
	}
	return nil
}

// result returns the error that determines the exit code. Documents that -w formatted are not
// findings.
func (f *formatter) result() error {
	if f.wrong || f.found && !f.write {
		return problemError(nil)
	}
	return nil
}

// replaceFile writes a file so that no reader sees a part of it.
func replaceFile(name string, content []byte, mode os.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), ".ctrlkit-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // after success it does not exist
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Chmod(mode), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}
