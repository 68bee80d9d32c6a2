// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
)

// A role is what a name stands for.
type role int

const (
	roleManager role = iota + 1
	roleState
	roleAction
	roleAlias
	roleBind
)

var roleNames = map[role]string{roleManager: "manager", roleState: "state", roleAction: "action", roleAlias: "alias", roleBind: "bind"}

// An occurrence is a place where a name is declared or used.
type occurrence struct {
	ast.Range
	role     role
	name     string
	decl     *ast.Decl // the manager of a state or action, and the declaration of a manager
	declares bool
}

// same reports whether two occurrences in one document are of one thing.
func (o occurrence) same(other occurrence) bool {
	return o.role == other.role && o.name == other.name && o.decl == other.decl
}

// occurrences returns the names of a document in the order of the text.
func occurrences(file *ast.File) []occurrence {
	n := &nameList{aliases: map[string]bool{}, binds: map[string]bool{}}
	for a := range ast.All[*ast.Alias](file) {
		n.aliases[a.Name.Text] = true
	}
	for b := range ast.All[*ast.Bind](file) {
		n.binds[b.GroupVersion.Text] = true
	}
	for node := range ast.All[ast.Node](file) {
		n.visit(node)
	}
	return n.found
}

type nameList struct {
	aliases, binds map[string]bool
	decl           *ast.Decl // that the walk is in
	found          []occurrence
}

func (n *nameList) visit(node ast.Node) {
	switch node := node.(type) {
	case *ast.Bind:
		n.add(roleBind, node.GroupVersion, nil, true)
	case *ast.Alias:
		n.add(roleAlias, node.Name, nil, true)
		n.kind(node.Kind)
	case *ast.Decl:
		n.decl = node
		n.add(roleManager, node.Name, node, true)
		n.kind(node.Kind)
	case *ast.State:
		n.add(roleState, node.Name, n.decl, true)
		n.kind(node.Kind)
	case *ast.Action:
		n.add(roleAction, node.Name, n.decl, true)
	case *ast.Arg:
		n.add(roleState, node.Name, n.decl, false)
	case *ast.Ref:
		if len(node.Path) > 0 && node.Path[0].Text != "target" {
			n.add(roleState, node.Path[0], n.decl, false)
		}
	}
}

func (n *nameList) add(r role, w ast.Word, decl *ast.Decl, declares bool) {
	if w.Text != "" {
		n.found = append(n.found, occurrence{Range: w.Range, role: r, name: w.Text, decl: decl, declares: declares})
	}
}

// kind adds the alias or the group and version in a kind.
func (n *nameList) kind(w ast.Word) {
	if n.aliases[w.Text] {
		n.add(roleAlias, w, nil, false)
		return
	}
	if slash := strings.LastIndexByte(w.Text, '/'); slash > 0 && n.binds[w.Text[:slash]] {
		w.Text, w.End = w.Text[:slash], w.Start+slash
		n.add(roleBind, w, nil, false)
	}
}

// nameAt returns the name at an offset, or that ends there.
func nameAt(file *ast.File, offset int) (occurrence, bool) {
	for _, o := range occurrences(file) {
		if o.touches(offset) {
			return o, true
		}
	}
	return occurrence{}, false
}

func (o occurrence) touches(offset int) bool { return touches(o.Range, offset) }

func touches(n ast.Node, offset int) bool {
	r := n.Span()
	return r.Start <= offset && offset <= r.End
}

// A scope is the blocks around a place in a document; nil for those that are not around it.
type scope struct {
	decl    *ast.Decl
	section *ast.Section
	state   *ast.State
	action  *ast.Action
}

// scopeAt returns the blocks around an offset. A block that is not closed ends where the parser saw
// that.
func scopeAt(d *document, offset int) scope {
	var s scope
	within := func(b ast.Block) bool {
		closed := b.End > b.Start && b.End <= len(d.content) && d.content[b.End-1] == '}'
		return b.Range != (ast.Range{}) && b.Start < offset && (offset < b.End || offset == b.End && !closed)
	}
	for node := range ast.All[ast.Node](d.tree) {
		switch node := node.(type) {
		case *ast.Decl:
			if within(node.Body) {
				s = scope{decl: node}
			}
		case *ast.Section:
			if within(node.Body) {
				s.section, s.state, s.action = node, nil, nil
			}
		case *ast.State:
			if within(node.Body) {
				s.state = node
			}
		case *ast.Action:
			if node.Start <= offset && offset < node.End {
				s.action = node
			}
		}
	}
	return s
}
