// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/vet"
)

func newVetCommand() *cobra.Command {
	o := &vetOptions{}
	var analyzers strings.Builder
	for _, a := range vet.Analyzers() {
		summary, _, _ := strings.Cut(a.Doc, "\n")
		fmt.Fprintf(&analyzers, "  %-11s %s\n", a.Name, strings.TrimPrefix(summary, "report "))
	}
	cmd := &cobra.Command{
		Use:   "vet [PACKAGE]...",
		Short: "Find mistakes in operators that the compiler accepts",
		Long: `Vet finds mistakes in operators that the compiler accepts. Its analyzers report:

` + analyzers.String() + `
They work for operators of this library, and unwatched, shared and background for all that use controller-runtime. A
comment with a reason exempts its line, or the file if it stands above the package clause:

  defer mgr.Update() //nolint:discarded // it panics, which is what this test is about

Packages are named as for the go command; the default is the package in the working directory. The exit code is 1 if
there are findings. Editors and CI can run the same analyzers through "go vet" with the program ctrlkit-vet (see
"go doc github.com/ctrlkit/ctrlkit/cmd/ctrlkit-vet").`,
		Example: `  ctrlkit vet ./...                                   all analyzers, all packages below this directory
  ctrlkit vet --only unwatched,shared ./...           two analyzers
  ctrlkit vet --skip clock --tests=false ./internal   all but one, and no test files
  ctrlkit vet -o json ./... | jq -r '.[].file'         for programs`,
		Args: packagePatterns,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVar(&o.tests, "tests", true, "also check test files")
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "run these `analyzers` only")
	cmd.Flags().StringSliceVar(&o.skip, "skip", nil, "do not run these `analyzers`")
	o.output = outputFlag(cmd, "text", "json")
	cmd.Flags().BoolFunc("json", "", func(string) error { return o.output.Set("json") })
	_ = cmd.Flags().MarkHidden("json")
	for _, flag := range []string{"only", "skip"} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(analyzerNames(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag is there
		}
	}
	return cmd
}

type vetOptions struct {
	tests      bool
	output     *choice
	only, skip []string
}

func (o *vetOptions) run(cmd *cobra.Command, patterns []string) error {
	analyzers, err := o.analyzers()
	if err != nil {
		return usageError(err)
	}
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
	if err := loadErrors(loaded, patterns); err != nil {
		return err
	}
	graph, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		return fmt.Errorf("analyzing packages: %w", err)
	}
	found, err := findings(graph)
	if err != nil {
		return err
	}
	if err := o.print(cmd.OutOrStdout(), found); err != nil {
		return err
	}
	if len(found) > 0 {
		return &exitError{code: exitFound}
	}
	return nil
}

func (o *vetOptions) print(w io.Writer, found []finding) error {
	if o.output.value == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(found)
	}
	for _, f := range found {
		if _, err := fmt.Fprintf(w, "%s:%d:%d: %s [%s]\n", f.File, f.Line, f.Column, f.Message, f.Analyzer); err != nil {
			return err
		}
	}
	return nil
}

// analyzers returns those that the flags choose.
func (o *vetOptions) analyzers() ([]*analysis.Analyzer, error) {
	names := analyzerNames()
	var errs []error
	for _, flag := range []struct {
		name   string
		values []string
	}{{"only", o.only}, {"skip", o.skip}} {
		for _, value := range flag.values {
			if slices.Contains(names, value) {
				continue
			}
			hint := "the analyzers are " + strings.Join(names, ", ")
			if near, ok := printable.Near(value, names); ok {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			errs = append(errs, fmt.Errorf("--%s: unknown analyzer %q; %s", flag.name, value, hint))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var chosen []*analysis.Analyzer
	for _, a := range vet.Analyzers() {
		if (len(o.only) == 0 || slices.Contains(o.only, a.Name)) && !slices.Contains(o.skip, a.Name) {
			chosen = append(chosen, a)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("--only and --skip leave no analyzer to run")
	}
	return chosen, nil
}

func analyzerNames() []string {
	var names []string
	for _, a := range vet.Analyzers() {
		names = append(names, a.Name)
	}
	return names
}

// mostErrors is how many reasons why packages can't be loaded are printed.
const mostErrors = 10

// loadErrors returns the errors that prevent the analysis of the packages: each once, although a
// package and its tests have it, and those alone from which the others follow.
func loadErrors(loaded []*packages.Package, patterns []string) error {
	causes := map[packages.ErrorKind][]error{}
	seen := map[string]bool{}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if text := withoutHeading(e); !seen[text] {
				seen[text] = true
				causes[e.Kind] = append(causes[e.Kind], fmt.Errorf("loading %s: %s", p.PkgPath, text))
			}
		}
	})
	if len(loaded) == 0 {
		causes[packages.ListError] = []error{fmt.Errorf("no packages match %s", fallback(strings.Join(patterns, " "), "."))}
	}
	for _, kind := range []packages.ErrorKind{packages.ListError, packages.ParseError, packages.UnknownError, packages.TypeError} {
		if found := causes[kind]; len(found) > 0 {
			return few(found)
		}
	}
	return nil
}

// withoutHeading returns the text of an error without the line that names the package, which differs
// between a package and its tests.
func withoutHeading(e packages.Error) string {
	if heading, text, ok := strings.Cut(e.Msg, "\n"); ok && strings.HasPrefix(heading, "# ") {
		return strings.TrimSpace(text)
	}
	return strings.TrimPrefix(e.Error(), "-: ")
}

// few joins errors, of which it leaves out those that are too many to read.
func few(found []error) error {
	if _, inside := check.ModuleRoot("."); !inside {
		return fmt.Errorf("%w\nthere is no go.mod in this directory or above it", found[0])
	}
	sums := func(err error) bool { return strings.Contains(err.Error(), "missing go.sum entry") }
	if n := len(found); slices.ContainsFunc(found, sums) {
		return fmt.Errorf("%w\ngo.sum is not complete, of which this is one of %s: run go mod tidy", found[slices.IndexFunc(found, sums)], count(n, "error"))
	}
	if left := len(found) - mostErrors; left > 0 {
		return fmt.Errorf("%w\n... and %s", errors.Join(found[:mostErrors]...), count(left, "more error"))
	}
	return errors.Join(found...)
}

// A finding is what an analyzer reports at a place.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Analyzer string `json:"analyzer"`
	Message  string `json:"message"`
	URL      string `json:"url"`
}

// findings returns the findings, sorted by place. Each is reported once, although a file can belong
// to a package and to its test.
func findings(graph *checker.Graph) ([]finding, error) {
	all := []finding{}
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("analyzing %s: %w", action.Package.PkgPath, action.Err)
		}
		for _, d := range action.Diagnostics {
			p := action.Package.Fset.Position(d.Pos)
			all = append(all, finding{shortName(p.Filename), p.Line, p.Column, action.Analyzer.Name, d.Message, action.Analyzer.URL})
		}
	}
	slices.SortFunc(all, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column,
			strings.Compare(a.Analyzer, b.Analyzer), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(all), nil
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
