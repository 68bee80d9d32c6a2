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

	"github.com/ctrlkit/ctrlkit/internal/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/dsl/diag"
)

// checkOptions are the flags of `ctrlkit check`.
type checkOptions struct {
	format  string
	explain string
	strict  bool
}

func newCheckCommand() *cobra.Command {
	var options checkOptions
	cmd := &cobra.Command{
		Use:   "check [flags] [file | directory | directory/...]...",
		Short: "Check documents against the Go packages that they are bound to",
		Long: `Check documents, and the names and types in them against the Go packages that they are bound to.

Without a path, check reads the documents in the current directory. The documents of one
directory are checked together, for they become one Go package. Every mistake is reported,
with its place, a code and a hint.

check exits with code 0 if there is no error (with --strict: no warning either), with 1 if
there is one, and with 2 if it was called wrongly.`,
		Example: `  ctrlkit check ./...               # all documents below this directory
  ctrlkit check --strict            # warnings are errors
  ctrlkit check --format json .     # for an editor
  ctrlkit check --explain CK0103    # what does this code mean?`,
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
	flags.StringVar(&options.format, "format", "text", "`form` of the output: text or json")
	flags.BoolVar(&options.strict, "strict", false, "let warnings fail too")
	flags.Lookup("explain").NoOptDefVal = "all"
	if err := cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // only for a flag that does not exist
	}
	return cmd
}

func runCheck(cmd *cobra.Command, args []string, options checkOptions, loader check.Loader) error {
	if options.format != "text" && options.format != "json" {
		return usageError(fmt.Errorf("unknown format %q: use text or json", options.format))
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	files, err := findDocuments(args)
	if err != nil {
		return err
	}
	list, sources, err := checkFiles(cmd.Context(), files, loader)
	if err != nil {
		return problemError(err)
	}
	if options.format == "json" {
		err = diag.PrintJSON(cmd.OutOrStdout(), list)
	} else {
		err = printDiagnostics(cmd, list, sources)
	}
	if err != nil {
		return problemError(err)
	}
	if list.HasErrors() || options.strict && len(list) > 0 {
		return problemError(nil)
	}
	return nil
}

func printDiagnostics(cmd *cobra.Command, list diag.List, sources map[string][]byte) error {
	out, errOut := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := (diag.Printer{Sources: sources, Style: styleFor(out)}).Print(out, list); err != nil {
		return err
	}
	if len(list) > 0 || styleFor(errOut) == diag.Color {
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

// checkFiles checks the documents of each directory together. It returns their texts by the names
// that diagnostics use.
func checkFiles(ctx context.Context, files []string, loader check.Loader) (diag.List, map[string][]byte, error) {
	if ctx == nil {
		ctx = context.Background() // cobra gives none when the program was not started with one
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
	var all diag.List
	sources := map[string][]byte{}
	for _, dir := range dirs {
		in, err := check.Read(dir, byDir[dir]...)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range in.Sources {
			sources[s.File] = s.Text
		}
		_, list, err := check.Check(ctx, in, loader)
		if err != nil {
			return nil, nil, fmt.Errorf("checking %s: %w", dir, err)
		}
		all = append(all, list...)
	}
	return all.Sort(), sources, nil
}

// explainCode prints what the manual says about a code, or about all codes in a line each.
func explainCode(w io.Writer, code string, args []string) error {
	// A flag whose value is optional takes it with an equals sign only; `--explain CK0103` gives it
	// as an argument.
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

// visible is an example with four spaces before each line, and with marks for what a terminal would
// act upon.
func visible(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + diag.Visible(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}
