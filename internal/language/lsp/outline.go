// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"errors"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/format"
)

// formatting returns the edit that formats a document. One with a mistake of form is not formatted.
func (*workspace) formatting(d *document, _ *directory, _ int) ([]textEdit, error) {
	if d.mistakes.HasErrors() {
		return nil, errors.New("the document has a mistake of form: correct it first")
	}
	return d.replaced(string(format.Tree(d.tree))), nil
}

// symbols returns the outline of a document.
func (*workspace) symbols(d *document, _ *directory, _ int) ([]documentSymbol, error) {
	all := []documentSymbol{}
	for _, item := range d.tree.Items {
		switch n := item.(type) {
		case *ast.Bind:
			all = append(all, d.symbol(n.GroupVersion, n, symbolNamespace, "bind "+n.Package.Text))
		case *ast.Alias:
			all = append(all, d.symbol(n.Name, n, symbolVariable, "alias "+n.Kind.Text))
		case *ast.Decl:
			decl := d.symbol(n.Name, n, symbolClass, "for "+n.Kind.Text)
			decl.Children = d.members(n)
			all = append(all, decl)
		}
	}
	return all, nil
}

// members returns the states and actions of a manager.
func (d *document) members(decl *ast.Decl) []documentSymbol {
	var all []documentSymbol
	for node := range ast.All[ast.Item](decl) {
		switch n := node.(type) {
		case *ast.State:
			all = append(all, d.symbol(n.Name, n, symbolField, kindText(n)))
		case *ast.Action:
			all = append(all, d.symbol(n.Name, n, symbolMethod, argumentsText(n)))
		}
	}
	return all
}

// symbol returns an entry of the outline. An editor refuses one without a name.
func (d *document) symbol(name ast.Word, n ast.Node, kind int, detail string) documentSymbol {
	if name.Text == "" {
		name.Text, name.Range = "?", n.Span()
	}
	return documentSymbol{Name: name.Text, Detail: detail, Kind: kind, Range: d.span(n), SelectionRange: d.span(name)}
}

func kindText(n *ast.State) string {
	if n.List {
		return "[]" + n.Kind.Text
	}
	return n.Kind.Text
}

func argumentsText(n *ast.Action) string {
	names := make([]string, len(n.Args))
	for i, arg := range n.Args {
		names[i] = arg.Name.Text
	}
	return "(" + strings.Join(names, ", ") + ")"
}
