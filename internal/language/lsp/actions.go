// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/gen"
)

// codeActions returns the quick fixes of the diagnostics in a range, the question mark for a
// reference that can have one, and the Go method for an action that has none.
func (w *workspace) codeActions(ctx context.Context, p codeActionParams) []codeAction {
	all := []codeAction{}
	d, dir := w.find(pathOf(p.TextDocument.URI))
	if d == nil {
		return all
	}
	start, end := d.offset(p.Range.Start), d.offset(p.Range.End)
	for _, found := range dir.list {
		r := rangeOf(found)
		if found.Start.Filename == d.path && r.Start <= end && start <= r.End {
			all = append(all, w.quickFixes(ctx, d, dir, found)...)
		}
	}
	if action := w.optional(ctx, d, dir, start); action != nil {
		all = append(all, *action)
	}
	if o, ok := nameAt(d.tree, start); ok && o.role == roleAction {
		if action := w.implement(d, dir, o); action != nil {
			all = append(all, *action)
		}
	}
	return all
}

// implement returns the code action that writes the method for an action: into the file of the type
// that implements the others, or into a new file as generate --skeleton writes it. It returns nil for
// an action that has a method, and while the document has a mistake.
func (w *workspace) implement(d *document, dir *directory, o occurrence) *codeAction {
	places := w.goPlaces(d, o)
	if dir.sound == nil || dir.sound != dir.analysis.Package || len(places) > 0 && places[0].file.document == "" {
		return nil
	}
	action := &codeAction{Title: fmt.Sprintf("Write the Go method for action %s", o.name), Kind: "refactor"}
	if types := w.goFiles.implementers(dir.path, o.decl); len(types) == 1 {
		file, edits := w.stub(d, dir, o, types[0])
		if file == nil {
			return nil
		}
		action.Edit.Changes = map[string][]textEdit{uriOf(file.path): edits}
		return action
	}
	skeletons, err := gen.Skeletons(dir.sound)
	if err != nil {
		return nil
	}
	for _, file := range skeletons {
		path := filepath.Join(dir.path, file.Name)
		if file.Source != filepath.Base(d.path) || strings.HasSuffix(file.Name, "_test.go") || w.goFiles.file(path) != nil {
			continue
		}
		uri := uriOf(path)
		action.Edit.DocumentChanges = []any{
			createFile{Kind: "create", URI: uri},
			textDocumentEdit{TextDocument: versionedDocument{URI: uri}, Edits: []textEdit{{NewText: string(file.Content)}}},
		}
		return action
	}
	return nil
}

// stub returns the edits that add a method to the file that has the other ones.
func (w *workspace) stub(d *document, dir *directory, o occurrence, receiver string) (*goFile, []textEdit) {
	method, packages := gen.Stub(dir.sound, filepath.Base(d.path), o.decl.Name.Text, o.name, receiver)
	file := w.goFiles.fileOf(dir.path, receiver)
	if method == "" || file == nil {
		return nil, nil
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file.path, file.content+"\n"+method, parser.ParseComments)
	if err != nil {
		return nil, nil // the file has a mistake
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if filepath.Base(packages[name]) == name {
			astutil.AddImport(fset, tree, packages[name])
		} else {
			astutil.AddNamedImport(fset, tree, name, packages[name])
		}
	}
	var content bytes.Buffer
	if err := format.Node(&content, fset, tree); err != nil {
		return nil, nil
	}
	return file, newText(file.content, w.utf8).replaced(content.String())
}

// fileOf returns the Go file with most of the methods of a type.
func (g goFiles) fileOf(dir, receiver string) *goFile {
	var best *goFile
	most := 0
	for _, f := range g.in(dir) {
		n := f.methodsOf(receiver)
		if f.document == "" && n > most {
			best, most = f, n
		}
	}
	return best
}

// drawingCommand returns the picture of the managers of a document. Its arguments are the URI of the
// document and a format of [Options].Draw, which is svg by default.
const drawingCommand = "ctrlkit.drawing"

// command runs a command of the server.
func (w *workspace) command(p commandParams) (string, error) {
	if p.Command != drawingCommand {
		return "", fmt.Errorf("unknown command %q: there is %s", p.Command, drawingCommand)
	}
	args := []string{"", "svg"}
	for i := range min(len(p.Arguments), len(args)) {
		if err := json.Unmarshal(p.Arguments[i], &args[i]); err != nil {
			return "", fmt.Errorf("reading argument %d of %s: %w", i+1, p.Command, err)
		}
	}
	d, _ := w.find(pathOf(args[0]))
	if d == nil {
		return "", fmt.Errorf("%q is not an open document: the arguments are the URI of a document, and a format", args[0])
	}
	decls := slices.Collect(ast.All[*ast.Decl](d.tree))
	if len(decls) == 0 {
		return "", errors.New("nothing to draw: the document declares no manager")
	}
	var picture strings.Builder
	err := w.draw(&picture, args[1], decls)
	return picture.String(), err
}
