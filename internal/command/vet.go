// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/ctrlkit/ctrlkit/vet"
)

func newVetCommand() *cobra.Command {
	o := &vetOptions{}
	cmd := &cobra.Command{
		Use:   "vet [PACKAGE]...",
		Short: "Find actions that are never run and outcomes that are never returned",
		Long: `Vet finds mistakes in the use of the library that the compiler accepts: actions that are created and never run, as in
"defer mgr.UpdateStatus()", and outcomes such as ctrlkit.RequeueAfter(...) that are not returned.

Packages are named as for the go command; the default is the package in the working directory. The exit code is 1 if
there are findings. Editors and CI can run the same check through "go vet" with the program ctrlkit-vet (see
"go doc github.com/ctrlkit/ctrlkit/vet").`,
		Example: `  ctrlkit vet ./...
  ctrlkit vet --tests=false ./internal/controller`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVar(&o.tests, "tests", true, "also check test files")
	return cmd
}

type vetOptions struct{ tests bool }

func (o *vetOptions) run(cmd *cobra.Command, patterns []string) error {
	config := &packages.Config{
		Context: cmd.Context(),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
		Tests: o.tests,
	}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		return fmt.Errorf("loading packages: %w", err)
	}
	if err := loadErrors(loaded); err != nil {
		return err
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{vet.Discarded}, loaded, nil)
	if err != nil {
		return fmt.Errorf("analyzing packages: %w", err)
	}
	lines, err := findings(graph)
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(cmd.OutOrStdout(), line)
	}
	if len(lines) > 0 {
		return &exitError{code: exitFound}
	}
	return nil
}

// loadErrors returns the errors that prevent the analysis of the packages.
func loadErrors(loaded []*packages.Package) error {
	var errs []error
	if len(loaded) == 0 {
		errs = append(errs, errors.New("no packages match"))
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, err := range p.Errors {
			errs = append(errs, fmt.Errorf("loading %s: %w", p.PkgPath, err))
		}
	})
	return errors.Join(errs...)
}

// findings returns the findings, sorted by place. Each is reported once, although a file can belong
// to a package and to its test.
func findings(graph *checker.Graph) ([]string, error) {
	type finding struct {
		file         string
		line, column int
		text         string
	}
	var all []finding
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("analyzing %s: %w", action.Package.PkgPath, action.Err)
		}
		for _, d := range action.Diagnostics {
			p := action.Package.Fset.Position(d.Pos)
			all = append(all, finding{shortName(p.Filename), p.Line, p.Column, d.Message})
		}
	}
	slices.SortFunc(all, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line, a.column-b.column, strings.Compare(a.text, b.text))
	})
	all = slices.Compact(all)
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", f.file, f.line, f.column, f.text)
	}
	return lines, nil
}

// shortName returns the path of a file relative to the working directory, if it is below that.
func shortName(file string) string {
	dir, err := os.Getwd()
	if err != nil {
		return file
	}
	if name, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(name) {
		return name
	}
	return file
}
