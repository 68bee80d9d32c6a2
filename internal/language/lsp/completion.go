// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// completion returns what can be written at a place.
func (w *workspace) completion(d *document, dir *directory, offset int) (completionList, error) {
	line := d.content[d.starts[d.position(offset).Line]:offset]
	c := &completer{workspace: w, document: d, dir: dir, offset: offset, line: line, scope: scopeAt(d, offset), items: []completionItem{}}
	c.complete()
	return completionList{Items: c.items}, nil
}

// A completer collects what can follow the text before a place.
type completer struct {
	*workspace
	scope
	document *document
	dir      *directory
	offset   int
	line     string // up to the place
	items    []completionItem
}

// The beginnings of lines after which something can follow, with the word that has been begun.
var (
	inReference  = regexp.MustCompile(`\$\{[ \t]*([\w./\[\]-]*)$`)
	inFieldPath  = regexp.MustCompile(`^\s*!?fields/([\w.]*)$`)
	inFieldValue = regexp.MustCompile(`^\s*fields/([\w.]+)!?=("?[^"$]*)$`)
	inNamespace  = regexp.MustCompile(`^\s*namespace=()$`)
	inFirstWord  = regexp.MustCompile(`^\s*([^\s=]*)$`)
	inStateKind  = regexp.MustCompile(`^\s*\w+[ \t]+(?:\[\][ \t]*)?([\w./-]*)$|^\s*\w+[ \t]*\[\][ \t]*([\w./-]*)$`)
	inDeclKind   = regexp.MustCompile(`^\s*decl[ \t]+\w+[ \t]+for[ \t]+([\w./-]*)$`)
	inDeclFor    = regexp.MustCompile(`^\s*decl[ \t]+\w+[ \t]+(\w*)$`)
	inAliasKind  = regexp.MustCompile(`^\s*alias[ \t]+\w+[ \t]+([\w./-]*)$`)
	inBindGroup  = regexp.MustCompile(`^\s*bind[ \t]+([\w./-]*)$`)
	inBindPath   = regexp.MustCompile(`^\s*bind[ \t]+(\S+)[ \t]+(\S*)$`)
	inComment    = regexp.MustCompile(`(^|\s)//`)
)

func (c *completer) complete() {
	if inComment.MatchString(c.line) {
		return
	}
	if m := inReference.FindStringSubmatch(c.line); m != nil {
		c.reference(m[1])
		return
	}
	switch {
	case c.state != nil:
		c.selectors()
	case c.section != nil && c.section.Keyword.Text == "state":
		if m := inStateKind.FindStringSubmatch(c.line); m != nil {
			c.kinds(cmp.Or(m[1], m[2]))
		}
	case c.section != nil:
		c.arguments()
	case c.decl != nil:
		if m := inFirstWord.FindStringSubmatch(c.line); m != nil {
			c.keywords(m[1], "state", "views of the cluster", "action", "what the manager does")
		}
	default:
		c.statement()
	}
}

// add adds an item that replaces the word which has been begun.
func (c *completer) add(begun, label string, kind int, detail, doc string) {
	if !strings.HasPrefix(strings.ToLower(label), strings.ToLower(begun)) && !strings.Contains(label, "/"+begun) {
		return
	}
	edit := textEdit{Range: c.document.span(ast.Range{Start: c.offset - len(begun), End: c.offset}), NewText: label}
	c.items = append(c.items, completionItem{
		Label: label, Kind: kind, Detail: detail, Documentation: doc, TextEdit: &edit,
		SortText: fmt.Sprintf("%05d", len(c.items)),
	})
}

// keywords adds keywords, each followed by its description.
func (c *completer) keywords(begun string, words ...string) {
	for i := 0; i < len(words); i += 2 {
		c.add(begun, words[i], itemKeyword, words[i+1], "")
	}
}

func (c *completer) statement() {
	if m := inDeclKind.FindStringSubmatch(c.line); m != nil {
		c.kinds(m[1])
	} else if m := inDeclFor.FindStringSubmatch(c.line); m != nil {
		c.keywords(m[1], "for", "the kind of the target")
	} else if m := inAliasKind.FindStringSubmatch(c.line); m != nil {
		c.kinds(m[1])
	} else if m := inBindGroup.FindStringSubmatch(c.line); m != nil {
		packages := check.BuiltinPackages()
		for _, label := range slices.Sorted(maps.Keys(packages)) {
			c.add(m[1], label, itemModule, packages[label], "")
		}
	} else if m := inBindPath.FindStringSubmatch(c.line); m != nil {
		if path := check.BuiltinPackages()[m[1]]; path != "" {
			c.add(m[2], path, itemModule, "the package of "+m[1], "")
		}
	} else if m := inFirstWord.FindStringSubmatch(c.line); m != nil {
		c.keywords(m[1], "bind", "a group and version, and their Go package", "alias", "a name for a kind", "decl", "a controller manager")
	}
}

func (c *completer) kinds(begun string) {
	for _, k := range c.dir.analysis.KindNames(c.document.path) {
		detail := k.Source
		if k.Means != "" {
			detail = k.Means + ", " + detail
		}
		c.add(begun, k.Name, itemClass, detail, "")
	}
}

func (c *completer) selectors() {
	if m := inFieldPath.FindStringSubmatch(c.line); m != nil {
		c.fieldPath(m[1])
		return
	}
	if m := inFieldValue.FindStringSubmatch(c.line); m != nil {
		if f, ok := c.jsonField(strings.Split(m[1], ".")[1:]); ok {
			for _, value := range f.Values {
				c.add(strings.TrimPrefix(m[2], `"`), value, itemEnumMember, f.Type, "")
			}
		}
		return
	}
	if m := inNamespace.FindStringSubmatch(c.line); m != nil {
		c.add(m[1], "*", itemKeyword, "all namespaces", "")
		return
	}
	if m := inFirstWord.FindStringSubmatch(c.line); m != nil {
		for _, s := range []string{"name=", "namespace=", "kind=", "group=", "owned", "owned=any", "labels/", "fields/.", "annotations/"} {
			c.add(m[1], s, itemKeyword, "", selectorDocs[strings.TrimRight(strings.TrimSuffix(s, "=any"), "=/.")])
		}
	}
}

// jsonField returns the field of the state's kind with a path of the JSON form.
func (c *completer) jsonField(path []string) (check.Field, bool) {
	k, ok := c.dir.analysis.Kind(c.document.path, c.state.Kind.Text)
	if !ok {
		return check.Field{}, false
	}
	f := k.Root()
	for _, name := range path {
		if f, ok = f.JSONStep(name); !ok {
			return check.Field{}, false
		}
	}
	return f, true
}

func (c *completer) fieldPath(path string) {
	if path == "" {
		c.add("", ".", itemKeyword, "the path of a field", "")
		return
	}
	names := strings.Split(path, ".")
	begun := names[len(names)-1]
	f, ok := c.jsonField(names[min(1, len(names)-1) : len(names)-1])
	if !ok {
		return
	}
	for _, next := range f.JSONFields() {
		if next.Text || len(next.JSONFields()) > 0 && !next.List {
			c.add(begun, next.Name, itemField, next.Type, c.goFiles.fieldDoc(next))
		}
	}
	if len(names) == 3 && names[1] == "metadata" {
		c.add(begun, "controller", itemField, "string", "The name of the owner that controls the object, if it is of the target's kind.")
	}
}

// arguments adds states between the parentheses of an action.
func (c *completer) arguments() {
	before := c.document.content[c.section.Body.Start:c.offset]
	open := strings.LastIndexByte(before, '(')
	if open < 0 || strings.ContainsAny(before[open:], "){}") {
		return
	}
	begun := before[strings.LastIndexFunc(before, notWord)+1:]
	given := map[string]bool{}
	if c.action != nil {
		for _, arg := range c.action.Args {
			given[arg.Name.Text] = !touches(arg, c.offset)
		}
	}
	for st := range ast.All[*ast.State](c.decl) {
		if !given[st.Name.Text] {
			c.add(begun, st.Name.Text, itemVariable, kindText(st), comments(st.Doc))
		}
	}
}

func notWord(r rune) bool { return strings.ContainsRune(" \t\r\n(,", r) }

// reference adds what can follow in a reference: the target and states that are one object, and
// their fields.
func (c *completer) reference(path string) {
	if c.decl == nil {
		return
	}
	names := strings.Split(path, ".")
	begun := names[len(names)-1]
	if len(names) == 1 {
		c.add(begun, "target", itemVariable, c.decl.Kind.Text, "The object that is reconciled.")
		for st := range ast.All[*ast.State](c.decl) {
			if !st.List && st.Start < c.offset && st != c.state {
				c.add(begun, st.Name.Text, itemVariable, st.Kind.Text, comments(st.Doc))
			}
		}
		return
	}
	f, ok := rootOf(c.document, c.dir, c.decl, names[0])
	for _, name := range names[1 : len(names)-1] {
		if ok {
			f, ok = f.Step(name)
		}
	}
	if !ok {
		return
	}
	for _, next := range f.Fields() {
		label := next.Name
		if next.List {
			label += "[]"
		}
		if next.Map {
			label += "["
		}
		c.add(begun, label, itemField, next.Type, c.goFiles.fieldDoc(next))
	}
}
