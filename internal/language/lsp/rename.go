// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"path/filepath"
)

// prepareRename returns the range of the name at a place, nil if there is none to rename.
func (w *workspace) prepareRename(d *document, _ *directory, offset int) (*span, error) {
	o, ok := nameAt(d.tree, offset)
	if !ok || o.role == roleBind {
		return nil, nil
	}
	at := d.span(o)
	return &at, nil
}

// rename renames a name in its document. It refuses a name that the Go beside the document has.
func (w *workspace) rename(ctx context.Context, p renameParams) (*workspaceEdit, error) {
	d, o, ok := w.named(ctx, p.TextDocument.URI, p.Position)
	switch {
	case !ok || o.role == roleBind:
		return nil, errors.New("there is no name of a state, an action, a manager or an alias here")
	case !token.IsIdentifier(p.NewName):
		return nil, fmt.Errorf("%q is not a name: use letters, digits and underscores, with a letter first", p.NewName)
	}
	edits := []textEdit{}
	for _, other := range occurrences(d.tree) {
		switch {
		case other.same(o):
			edits = append(edits, textEdit{d.span(other), p.NewName})
		case other.role == o.role && other.name == p.NewName && (other.decl == o.decl || o.role == roleManager):
			return nil, fmt.Errorf("there is a%s %s already", map[bool]string{true: "n"}[o.role == roleAction || o.role == roleAlias]+" "+roleNames[o.role], p.NewName)
		}
	}
	if places := w.goPlaces(d, o); len(places) > 0 {
		at := places[0].file.fset.Position(places[0].name.Pos())
		return nil, fmt.Errorf("%s %s has Go code: %s:%d. Rename it there, and then in the document, or remove the generated file and rename it here first",
			roleNames[o.role], o.name, filepath.Base(at.Filename), at.Line)
	}
	return &workspaceEdit{Changes: map[string][]textEdit{d.uri: edits}}, nil
}
