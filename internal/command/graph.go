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
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/layered"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/manager"
)

// graphFormats are the formats of "ctrlkit graph", with their file name extensions.
var graphFormats = map[string][]string{
	"text":    {".txt"},
	"dot":     {".dot", ".gv"},
	"mermaid": {".mmd", ".mermaid"},
	"svg":     {".svg"},
}

// graphOptions are the flags of "ctrlkit graph".
type graphOptions struct {
	format, output string
	ascii          bool
}

func newGraphCommand() *cobra.Command {
	var o graphOptions
	cmd := &cobra.Command{
		Use:   "graph [FILE|DIRECTORY|DIRECTORY/...]...",
		Short: "Draw the managers that documents declare: states, actions, and their dependencies",
		Long: `Graph draws the managers that documents declare: the target, the states with their selections, the actions, and which
action reads which state. A picture with more than 150 states and actions has the states in groups by their kind, and
the actions in groups by the kinds that they read; as text, each has its lines.

It reads *.ctrlkit files, by default those in the working directory, or standard input for "-". It checks only the
syntax of the documents. The extension of the output file determines the format, which is text by default.`,
		Example: `  ctrlkit graph                                   as text, the documents of this directory
  ctrlkit graph ./... -o managers.svg             as a picture, all documents below this directory
  ctrlkit graph cronjob.ctrlkit --format mermaid  for a Markdown page
  ctrlkit graph - --format dot <cronjob.ctrlkit | dot -Tpdf -o cronjob.pdf`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"ctrlkit"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "", "output format: text, dot, mermaid or svg")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output file; standard output if empty")
	cmd.Flags().BoolVar(&o.ascii, "ascii", false, "draw text with ASCII characters only")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func formatNames() []string { return []string{"text", "dot", "mermaid", "svg"} }

func (o *graphOptions) run(cmd *cobra.Command, args []string) error {
	format, err := o.chosenFormat()
	if err != nil {
		return usageError(err)
	}
	sources, err := documents(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	decls, err := parseAll(sources, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	if err := o.draw(&picture, format, decls); err != nil {
		return err
	}
	if o.output == "" {
		_, err = cmd.OutOrStdout().Write(picture.Bytes())
		return err
	}
	return os.WriteFile(o.output, picture.Bytes(), 0o644) //nolint:gosec // a picture has no secrets
}

func (o *graphOptions) chosenFormat() (string, error) {
	if o.format != "" {
		if _, known := graphFormats[o.format]; !known {
			return "", unknownFormat(o.format)
		}
		return o.format, nil
	}
	if o.output == "" {
		return "text", nil
	}
	extension := strings.ToLower(filepath.Ext(o.output))
	for format, extensions := range graphFormats {
		if slices.Contains(extensions, extension) {
			return format, nil
		}
	}
	return "", fmt.Errorf("no format has the extension of %q: add --format with one of %s", o.output, strings.Join(formatNames(), ", "))
}

func unknownFormat(format string) error {
	return fmt.Errorf("--format %q: want one of %s", format, strings.Join(formatNames(), ", "))
}

func (o *graphOptions) draw(w io.Writer, format string, decls []*ast.Decl) error {
	switch format {
	case "dot":
		return drawing.DOT(w, manager.Graph("Managers", decls...))
	case "mermaid":
		return drawing.Mermaid(w, manager.Graph("", decls...))
	case "svg":
		return layered.SVG(w, manager.Graph("Managers", decls...))
	case "text":
	default:
		return unknownFormat(format)
	}
	branches := drawing.BoxBranches
	if o.ascii {
		branches = drawing.ASCIIBranches
	}
	for i, decl := range decls {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := drawing.WriteTree(w, manager.Tree(decl), branches, nil); err != nil {
			return err
		}
	}
	return nil
}

// parseAll parses the documents and prints their syntax errors.
func parseAll(sources []document, stderr io.Writer) ([]*ast.Decl, error) {
	printer := diag.Printer{Sources: map[string][]byte{}, Style: styleFor(stderr)}
	var list diag.List
	var files []*ast.File
	for _, source := range sources {
		printer.Sources[source.name] = source.text
		file, found := parser.Parse(source.name, source.text)
		files, list = append(files, file), append(list, found...)
	}
	if err := printer.Print(stderr, list.Sort()); err != nil {
		return nil, err
	}
	if list.HasErrors() {
		return nil, &exitError{code: exitFound}
	}
	decls := manager.Declared(files...)
	if len(decls) == 0 {
		return nil, errors.New("nothing to draw: the documents declare no manager")
	}
	return decls, nil
}

// A document is the text of a file in the language.
type document struct {
	name string
	text []byte
}

// documents reads the documents that args name, or standard input for "-".
func documents(args []string, stdin io.Reader) ([]document, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	if text, ok, err := readInput(args, stdin); ok || err != nil {
		return []document{{inputName, text}}, err
	}
	names, err := findDocuments(args)
	if err != nil {
		return nil, err
	}
	all := make([]document, len(names))
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading a document: %w", err)
		}
		all[i] = document{name, text}
	}
	return all, nil
}
