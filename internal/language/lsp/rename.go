// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"slices"
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

// rename returns the edits of a document that rename a name, and the renamer of what is generated
// from it in the Go of the module, nil if nothing is.
func (w *workspace) rename(ctx context.Context, p renameParams) (*workspaceEdit, *goRenamer, error) {
	d, o, ok := w.named(ctx, p.TextDocument.URI, p.Position)
	switch {
	case !ok || o.role == roleBind:
		return nil, nil, errors.New("there is no name of a state, an action, a manager or an alias here")
	case !token.IsIdentifier(p.NewName):
		return nil, nil, fmt.Errorf("%q is not a name: use letters, digits and underscores, with a letter first", p.NewName)
	}
	edits := []textEdit{}
	for _, other := range occurrences(d.tree) {
		switch {
		case other.same(o):
			edits = append(edits, textEdit{d.span(other), p.NewName})
		case other.role == o.role && other.name == p.NewName && (other.decl == o.decl || o.role == roleManager):
			return nil, nil, fmt.Errorf("there is a%s %s already", map[bool]string{true: "n"}[o.role == roleAction || o.role == roleAlias]+" "+roleNames[o.role], p.NewName)
		}
	}
	all := &workspaceEdit{Changes: map[string][]textEdit{d.uri: edits}}
	if o.role == roleAlias || len(w.goPlaces(d, o)) == 0 {
		return all, nil, nil
	}
	inGo, err := w.renameGo(ctx, d, w.dirs[dirOf(d.path)], edited(d.text, edits))
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s has Go code: %w", roleNames[o.role], o.name, err)
	}
	return all, inGo, nil
}

// edited returns a text with edits, which are in order.
func edited(t *text, edits []textEdit) string {
	for _, e := range slices.Backward(edits) {
		t = t.changed(contentChange{Range: &e.Range, Text: e.NewText})
	}
	return t.content
}
