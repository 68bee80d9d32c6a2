// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/fix"
)

func newFixCommand() *cobra.Command {
	f := &fixer{}
	cmd := &cobra.Command{
		Use:   "fix [PACKAGE]...",
		Short: "Move an operator of the original library to this one",
		Long: `Fix moves an operator that was written with the original ctrlkit library, such as
github.com/risingwavelabs/ctrlkit or github.com/arkbriar/ctrlkit, to this one: it rewrites imports and names in Go files,
removes the files that the original generator wrote, and generates them again from the documents beside them.

Packages are named as for the go command, tests included; the default is the package in the working directory. Name all
at once: ./... Nothing of what the operator imports has to be there, so fix can be run before go.mod is changed, and
after. Running it again changes nothing.

What fix can't move it prints as "FILE:LINE: NAME: what to write instead". Files in which something is left are
written nevertheless. Nothing is written if a document has a mistake.

Exit codes: 0 everything was moved, 1 something is left, or a document has a mistake, 2 wrong usage.`,
		Example: `  ctrlkit fix ./...                             all packages of this module
  ctrlkit fix -n ./...                          print what would change as a diff
  ctrlkit fix --from example.com/op/flow ./...  for a copy of the library in example.com/op/flow`,
		Args: packagePatterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.out, f.problems = cmd.OutOrStdout(), cmd.ErrOrStderr()
			defer endOnInterrupt(cmd.Context())()
			return f.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "write nothing; print what would change as a diff")
	cmd.Flags().StringSliceVar(&f.from, "from", nil, "also rewrite the imports of these `packages`, copies of the original library")
	return cmd
}

// A fixer is one run of the command.
type fixer struct {
	dryRun        bool
	from          []string
	out, problems io.Writer
}

func (f *fixer) run(ctx context.Context, patterns []string) error {
	plan, err := fix.Load(ctx, fix.Options{Dir: ".", Patterns: patterns, From: f.from})
	if err != nil {
		return err
	}
	for _, left := range plan.Left {
		fmt.Fprintf(f.problems, "%s:%d: %s: %s\n", shortName(left.File), left.Line, left.Name, left.Instead)
	}
	if err := f.carryOut(ctx, plan); err != nil {
		return err
	}
	if len(plan.Left) > 0 {
		return problemError(nil)
	}
	return nil
}

// carryOut writes what the plan says. What the original generator wrote is removed last: an
// interrupted run can be repeated.
func (f *fixer) carryOut(ctx context.Context, plan *fix.Plan) error {
	g := &generator{loader: check.NewCache(check.GoLoader{}), out: f.out, problems: f.problems}
	var generated []string
	for _, dir := range plan.Generate {
		files, _, err := g.generate(ctx, target{dir: shortName(dir)})
		switch {
		case errors.Is(err, errMistakes):
			return problemError(nil)
		case err != nil:
			return err
		}
		for _, file := range files {
			generated = append(generated, filepath.Join(shortName(dir), file.Name))
		}
	}
	if f.dryRun {
		return f.print(plan, generated)
	}
	for _, file := range plan.Files {
		info, err := os.Stat(file.Name)
		if err == nil {
			err = replaceFile(file.Name, file.After, info.Mode().Perm())
		}
		if err != nil {
			return fmt.Errorf("writing Go: %w", err)
		}
		fmt.Fprintln(f.out, "fixed", shortName(file.Name))
	}
	for _, dir := range plan.Generate {
		g.problems = io.Discard // it has printed them
		if err := g.directory(ctx, target{dir: shortName(dir)}); err != nil {
			return err
		}
	}
	for _, name := range plan.Remove {
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("removing a generated file: %w", err)
		}
		fmt.Fprintln(f.out, "removed", shortName(name))
	}
	return nil
}

// print prints what a run would do.
func (f *fixer) print(plan *fix.Plan, generated []string) error {
	for _, file := range plan.Files {
		name := shortName(file.Name)
		if _, err := f.out.Write(diff.Diff(name+".orig", file.Before, name, file.After)); err != nil {
			return err
		}
	}
	for _, name := range plan.Remove {
		fmt.Fprintln(f.out, "would remove", shortName(name))
	}
	for _, name := range generated {
		fmt.Fprintln(f.out, "would write", name)
	}
	return nil
}
