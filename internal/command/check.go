// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// checkOptions are the flags of `ctrlkit check`.
type checkOptions struct {
	output  *choice
	explain string
	strict  bool
}

func newCheckCommand() *cobra.Command {
	var options checkOptions
	cmd := &cobra.Command{
		Use:   "check [flags] [file | directory | directory/... | -]...",
		Short: "Check documents against the Go packages that they import",
		Long: `Check the syntax of documents, and their names and types against the Go packages that they import.

Without a path, check reads the documents in the current directory. The documents of a directory are
checked together, because they become one Go package. With the path "-" it reads one document from
standard input, as if that were the only one in the current directory. Each mistake is reported with
its place, a code and a hint.

Exit codes: 0 no errors (with --strict: no warnings either), 1 errors, 2 wrong usage.`,
		Example: `  ctrlkit check ./...               # all documents below this directory
  ctrlkit check --strict            # warnings are errors
  ctrlkit check -o json .           # for a program
  ctrlkit check -o json - < x.cm    # for an editor, of a text that is not saved
  ctrlkit check --explain CK0103    # explain a code`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("explain") {
				return explainCode(cmd.OutOrStdout(), options.explain, args)
			}
			defer endOnInterrupt(cmd.Context())()
			return runCheck(cmd, args, options, check.GoLoader{})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.explain, "explain", "", "explain a `code`, or all codes, and check nothing")
	options.output = outputFlag(cmd, "text", "json")
	options.output.alsoAs(cmd, "format")
	flags.BoolVar(&options.strict, "strict", false, "treat warnings as errors")
	flags.Lookup("explain").NoOptDefVal = "all"
	return cmd
}

func runCheck(cmd *cobra.Command, args []string, options checkOptions, loader check.Loader) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	inputs, err := inputsOf(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	list, sources, err := checkInputs(cmd.Context(), inputs, loader)
	if err != nil {
		return problemError(err)
	}
	if options.output.value == "json" {
		err = diag.PrintJSON(cmd.OutOrStdout(), list)
	} else {
		err = printDiagnostics(cmd, list, sources)
	}
	if err != nil {
		return problemError(err)
	}
	if list.HasErrors() || options.strict && len(list.Problems()) > 0 {
		return problemError(nil)
	}
	return nil
}

func printDiagnostics(cmd *cobra.Command, list diag.List, sources map[string][]byte) error {
	out, errOut := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := (diag.Printer{Sources: sources, Style: styleFor(out)}).Print(out, list); err != nil {
		return err
	}
	if len(list.Problems()) > 0 || styleFor(errOut) == diag.Color {
		_, err := fmt.Fprintf(errOut, "%s, %s in %s\n", count(list.Count(diag.Error), "error"), count(list.Count(diag.Warning), "warning"),
			count(len(sources), "document"))
		return err
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// inputsOf reads the documents that args name, those of each directory together, or standard input
// for "-".
func inputsOf(args []string, stdin io.Reader) ([]check.Input, error) {
	if text, ok, err := readInput(args, stdin); ok || err != nil {
		in := check.Input{Sources: []check.Source{{File: inputName, Text: text}}}
		in.Dir, _ = check.ModuleRoot(".")
		in.Name, in.Path = check.GoPackage(".")
		return []check.Input{in}, err
	}
	files, err := findDocuments(args)
	if err != nil {
		return nil, err
	}
	byDir := map[string][]string{}
	var dirs []string
	for _, file := range files {
		dir := filepath.Dir(file)
		if _, ok := byDir[dir]; !ok {
			dirs = append(dirs, dir)
		}
		byDir[dir] = append(byDir[dir], file)
	}
	inputs := make([]check.Input, len(dirs))
	for i, dir := range dirs {
		if inputs[i], err = check.Read(dir, byDir[dir]...); err != nil {
			return nil, problemError(err)
		}
		inputs[i].Dir, _ = check.ModuleRoot(dir)
	}
	return inputs, nil
}

// checkInputs checks the documents of each directory, and loads the Go packages of all directories of
// a module at once. It also returns the texts of the documents, by the file names in diagnostics.
func checkInputs(ctx context.Context, inputs []check.Input, loader check.Loader) (diag.List, map[string][]byte, error) {
	if ctx == nil {
		ctx = context.Background() // cobra has none if the command was executed without one
	}
	var all diag.List
	sources := map[string][]byte{}
	cache := check.NewCache(loader)
	if err := cache.Preload(ctx, inputs); err != nil {
		return nil, nil, err
	}
	for _, in := range inputs {
		_, list, err := check.Check(ctx, in, cache)
		if err != nil {
			return nil, nil, fmt.Errorf("checking %s: %w", filepath.Dir(in.Sources[0].File), err)
		}
		for _, s := range in.Sources {
			sources[s.File] = s.Text
		}
		all = append(all, list...)
	}
	return all.Sort(), sources, nil
}

// explainCode prints the explanation of a code, or one line for each code.
func explainCode(w io.Writer, code string, args []string) error {
	// The value of a flag with an optional value needs an equals sign: in `--explain CK0103`, the
	// code is an argument.
	if code == "all" && len(args) == 1 {
		code = args[0]
	} else if len(args) > 0 {
		return usageError(fmt.Errorf("--explain takes one code"))
	}
	if code == "all" {
		for _, e := range diag.Codes() {
			if _, err := fmt.Fprintf(w, "%s  %-7s  %s\n", e.Code, e.Severity, e.Title); err != nil {
				return problemError(err)
			}
		}
		return nil
	}
	e, ok := diag.Explain(diag.Code(strings.ToUpper(code)))
	if !ok {
		return usageError(fmt.Errorf("unknown code %q: run 'ctrlkit check --explain' for a list", code))
	}
	_, err := fmt.Fprintf(w, "%s: %s (%s)\n\n%s\n\nThe smallest example:\n\n%s", e.Code, e.Title, e.Severity, e.Text, visible(e.Example))
	if err != nil {
		return problemError(err)
	}
	return nil
}

// visible indents an example and escapes characters that control a terminal.
func visible(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + diag.Visible(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}
