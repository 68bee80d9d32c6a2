// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// named returns the name at a place of a document or of a Go file beside documents, with the
// document that declares it.
func (w *workspace) named(ctx context.Context, uri string, at position) (*document, occurrence, bool) {
	path := pathOf(uri)
	if d, _ := w.find(path); d != nil {
		o, ok := nameAt(d.tree, d.offset(at))
		return d, o, ok
	}
	f := w.goFiles.file(path)
	if f == nil || !strings.HasSuffix(path, ".go") || !hasDocuments(filepath.Dir(path)) {
		return nil, occurrence{}, false
	}
	dir := w.dirs[filepath.Dir(path)]
	if dir == nil {
		dir = &directory{path: filepath.Dir(path), documents: map[string]*document{}}
		w.refresh(ctx, dir)
	}
	return w.behind(dir, f, newText(f.content, w.utf8).offset(at))
}

// definition returns where what is at a place is declared: in the document, from its declaration in
// Go, and from Go in the document.
func (w *workspace) definition(ctx context.Context, p documentParams) []location {
	d, o, ok := w.named(ctx, p.TextDocument.URI, p.Position)
	switch inGo := strings.HasSuffix(p.TextDocument.URI, ".go"); {
	case ok && (!o.declares || inGo):
		return d.declarations(o)
	case ok && o.role != roleAlias:
		var places []location
		for _, place := range w.goPlaces(d, o) {
			places = append(places, place.file.location(place.name, w.utf8))
		}
		return places
	}
	d, dir := w.find(pathOf(p.TextDocument.URI))
	if d == nil {
		return nil
	}
	return w.goDefinition(d, dir, d.offset(p.Position))
}

// declarations returns where a document declares a name.
func (d *document) declarations(o occurrence) []location {
	var places []location
	for _, other := range occurrences(d.tree) {
		if other.same(o) && other.declares {
			places = append(places, location{d.uri, d.span(other)})
		}
	}
	return places
}

// goDefinition returns where the Go type of a kind or of a field is declared.
func (w *workspace) goDefinition(d *document, dir *directory, offset int) []location {
	at := token.Position{}
	kind := func(words ...ast.Word) {
		for _, word := range words {
			if k, ok := dir.analysis.Kind(d.path, word.Text); ok && touches(word, offset) {
				at = k.Position()
			}
		}
	}
	var decl *ast.Decl
	var state *ast.State
	for node := range ast.All[ast.Node](d.tree) {
		if !touches(node, offset) {
			continue
		}
		switch n := node.(type) {
		case *ast.Alias:
			kind(n.Name, n.Kind)
		case *ast.Decl:
			decl = n
			kind(n.Kind)
		case *ast.State:
			state = n
			kind(n.Kind)
		case *ast.Selector:
			if touches(n.Key, offset) {
				at = fieldPosition(d, dir, state, n, offset)
			}
		case *ast.Ref:
			f, ok := rootOf(d, dir, decl, n.Path[0].Text)
			for i, word := range n.Path {
				if i > 0 && ok {
					f, ok = f.Step(word.Text)
				}
				if ok && touches(word, offset) {
					at = f.Position
					break
				}
			}
		}
	}
	return w.goLocation(at)
}

// fieldPosition returns where the Go field is declared that is at a place in the path of a selector.
func fieldPosition(d *document, dir *directory, state *ast.State, n *ast.Selector, offset int) token.Position {
	path, ok := strings.CutPrefix(n.Key.Text, "fields/.")
	k, known := check.Kind{}, false
	if state != nil {
		k, known = dir.analysis.Kind(d.path, state.Kind.Text)
	}
	if !ok || !known {
		return token.Position{}
	}
	f, end := k.Root(), n.Key.Start+len("fields/")
	for name := range strings.SplitSeq(path, ".") {
		end += 1 + len(name)
		if f, ok = f.JSONStep(name); !ok || offset <= end {
			break
		}
	}
	return f.Position
}

// goLocation returns the place in a Go file where a name begins.
func (w *workspace) goLocation(at token.Position) []location {
	f := w.goFiles.file(at.Filename)
	if !at.IsValid() || f == nil {
		return nil
	}
	t := newText(f.content, w.utf8)
	if at.Line > len(t.starts) {
		return nil
	}
	offset := t.starts[at.Line-1] + max(at.Column-1, 0)
	p := t.position(offset)
	return []location{{uriOf(at.Filename), span{p, p}}}
}

// references returns where a name is used in its document and in the Go beside that, with the place
// of its declaration if that is wanted.
func (w *workspace) references(ctx context.Context, p referenceParams) []location {
	d, o, ok := w.named(ctx, p.TextDocument.URI, p.Position)
	if !ok {
		return nil
	}
	var places []location
	for _, other := range occurrences(d.tree) {
		if other.same(o) && (p.Context.IncludeDeclaration || !other.declares) {
			places = append(places, location{d.uri, d.span(other)})
		}
	}
	for _, place := range w.goPlaces(d, o) {
		places = append(places, place.file.location(place.name, w.utf8))
	}
	return places
}
