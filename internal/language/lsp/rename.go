// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"maps"
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

// rename renames a name in its document, and what is generated from it in the Go of the module.
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
	all := map[string][]textEdit{d.uri: edits}
	if o.role != roleAlias && len(w.goPlaces(d, o)) > 0 {
		dir := w.dirs[dirOf(d.path)]
		inGo, err := w.renameGo(ctx, d, dir, edited(d.text, edits))
		if err != nil {
			return nil, fmt.Errorf("%s %s has Go code: %w", roleNames[o.role], o.name, err)
		}
		maps.Copy(all, inGo)
	}
	return &workspaceEdit{Changes: all}, nil
}

// edited returns a text with edits, which are in order.
func edited(t *text, edits []textEdit) string {
	for _, e := range slices.Backward(edits) {
		t = t.changed(contentChange{Range: &e.Range, Text: e.NewText})
	}
	return t.content
}
