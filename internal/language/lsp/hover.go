// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/gen"
)

// hover describes what is at a place, in Markdown. It returns nil if there is nothing to say.
func (w *workspace) hover(d *document, dir *directory, offset int) (*hover, error) {
	h := &describer{workspace: w, document: d, dir: dir}
	for node := range ast.All[ast.Node](d.tree) {
		if touches(node, offset) {
			h.visit(node, offset)
		}
	}
	if h.text == "" {
		return nil, nil
	}
	return &hover{Contents: markup{Kind: "markdown", Value: strings.TrimSpace(h.text)}, Range: d.span(h.at)}, nil
}

// A describer describes the innermost thing at a place.
type describer struct {
	*workspace
	document *document
	dir      *directory
	decl     *ast.Decl // around the place
	state    *ast.State
	text     string
	at       ast.Range
}

func (h *describer) say(at ast.Node, text string) {
	if text != "" {
		h.text, h.at = text, at.Span()
	}
}

// visit looks at a node that the place is in, the outer ones first.
func (h *describer) visit(node ast.Node, offset int) {
	switch n := node.(type) {
	case *ast.Alias:
		h.kindAt(n.Kind, offset)
		if touches(n.Name, offset) {
			h.say(n.Name, h.kind(n.Name.Text))
		}
	case *ast.Decl:
		h.decl = n
		h.kindAt(n.Kind, offset)
	case *ast.State:
		h.state = n
		h.kindAt(n.Kind, offset)
		if touches(n.Name, offset) {
			h.say(n.Name, h.describeState(n))
		}
	case *ast.Action:
		if touches(n.Name, offset) {
			h.say(n.Name, h.describeAction(n))
		}
	case *ast.Arg:
		h.say(n, h.stateNamed(n.Name.Text))
	case *ast.Selector:
		if touches(n.Key, offset) {
			h.say(n.Key, h.selector(n))
		}
	case *ast.Ref:
		h.reference(n, offset)
	}
}

func (h *describer) kindAt(w ast.Word, offset int) {
	if touches(w, offset) {
		h.say(w, h.kind(w.Text))
	}
}

// kind describes a kind by the word that a document has for it.
func (h *describer) kind(word string) string {
	k, ok := h.dir.analysis.Kind(h.document.path, word)
	if !ok {
		return ""
	}
	scope := "namespaced"
	if !k.Namespaced {
		scope = "cluster-scoped"
	}
	text := fmt.Sprintf("**%s** `%s`, %s\n\n`%s`\n\n", k.Kind.Kind, k.APIVersion(), scope, k.Source)
	return text + cmp.Or(k.Doc, h.goFiles.docAt(k.Position()))
}

func (h *describer) stateNamed(name string) string {
	if h.decl != nil {
		for st := range ast.All[*ast.State](h.decl) {
			if st.Name.Text == name {
				return h.describeState(st)
			}
		}
	}
	return ""
}

// describeState describes a state as it is written, and what the generated code does for it, which is
// known for the last texts without a mistake.
func (h *describer) describeState(n *ast.State) string {
	text := code(h.document.content[n.Start:min(n.End, len(h.document.content))])
	text += comments(n.Doc)
	if h.dir.sound == nil || h.decl == nil {
		return text
	}
	s := gen.DescribeState(h.dir.sound, filepath.Base(h.document.path), h.decl.Name.Text, n.Name.Text)
	if s == nil {
		return text
	}
	text += fmt.Sprintf("`%s(ctx) (%s, error)`\n\n", s.Getter, s.Result)
	index := "none"
	if len(s.Indexes) > 0 {
		index = "`" + strings.Join(s.Indexes, "`, `") + "`"
	}
	return text + fmt.Sprintf("- **index**: %s\n- **watch**: %s\n- **rights**: `%s`\n- **requests**: %s\n", index, s.Watch, s.Rule, s.Requests)
}

// describeAction describes an action by the method that implements it, and says when its arguments
// are read.
func (h *describer) describeAction(n *ast.Action) string {
	text := code(n.Name.Text+argumentsText(n)) + comments(n.Doc)
	if h.dir.sound != nil && h.decl != nil {
		if signature := gen.DescribeAction(h.dir.sound, filepath.Base(h.document.path), h.decl.Name.Text, n.Name.Text); signature != "" {
			text += "```go\n" + signature + "\n```\n\n"
		}
	}
	switch len(n.Args) {
	case 0:
		return text + "Runs when the workflow reaches it. It reads no state."
	case 1:
		return text + fmt.Sprintf("Runs when the workflow reaches it and `%s` has been read, once in a reconcile. If that fails, the method is not called.", n.Args[0].Name.Text)
	}
	return text + "Runs when the workflow reaches it and its states have been read, each once in a reconcile. If one cannot be read, the method is not called."
}

func (h *describer) reference(ref *ast.Ref, offset int) {
	f, ok := h.root(ref.Path[0].Text)
	for i, word := range ref.Path {
		if i > 0 && ok {
			f, ok = f.Step(word.Text)
		}
		if !touches(word, offset) {
			continue
		}
		switch {
		case i > 0 && ok && ref.Default.Text != "":
			h.say(word, h.field(f)+"\n\nWhile the reference is empty, it stands for `"+ref.Default.Text+"`.")
		case i > 0 && ok && ref.Optional:
			h.say(word, h.field(f)+"\n\nOptional: while the reference is empty, the state selects nothing.")
		case i > 0 && ok:
			h.say(word, h.field(f))
		case i == 0 && word.Text == "target" && h.decl != nil:
			h.say(word, h.kind(h.decl.Kind.Text))
		case i == 0:
			h.say(word, h.stateNamed(word.Text))
		}
		return
	}
}

// root returns the object that a reference begins with.
func (h *describer) root(name string) (check.Field, bool) {
	return rootOf(h.document, h.dir, h.decl, name)
}

func rootOf(d *document, dir *directory, decl *ast.Decl, name string) (check.Field, bool) {
	if decl == nil {
		return check.Field{}, false
	}
	word := ""
	if name == "target" {
		word = decl.Kind.Text
	}
	for st := range ast.All[*ast.State](decl) {
		if st.Name.Text == name {
			word = st.Kind.Text
		}
	}
	k, ok := dir.analysis.Kind(d.path, word)
	if !ok {
		return check.Field{}, false
	}
	return k.Root(), true
}

func (h *describer) field(f check.Field) string {
	text := fmt.Sprintf("**%s** `%s`\n\n%s", f.Name, f.Type, h.goFiles.fieldDoc(f))
	if len(f.Values) > 0 && len(f.Values) <= mostValues {
		text += "\n\nValues: `" + strings.Join(f.Values, "`, `") + "`"
	}
	return text
}

// mostValues is how many values of a field are listed.
const mostValues = 20

// selector describes a selector by its family, that of a field with the field.
func (h *describer) selector(n *ast.Selector) string {
	family, key, _ := strings.Cut(strings.Trim(n.Key.Text, "!"), "/")
	about := selectorDocs[family]
	if family != "fields" || h.state == nil {
		return about
	}
	k, ok := h.dir.analysis.Kind(h.document.path, h.state.Kind.Text)
	if !ok {
		return about
	}
	f := k.Root()
	for _, name := range strings.Split(key, ".")[1:] {
		if f, ok = f.JSONStep(name); !ok {
			return about
		}
	}
	return h.field(f) + "\n\n" + about
}

// selectorDocs describe selectors by their family.
var selectorDocs = map[string]string{
	"name":        "The object with this name. In a list, with `[]` in a reference, one object for each element.",
	"namespace":   "The namespace of the objects, in place of that of the target. `*` stands for all namespaces.",
	"kind":        "The state selects something only while the reference has the kind of the state. With `[]`, for each element.",
	"group":       "The state selects something only while the reference has the API group of the state. With `[]`, for each element.",
	"owned":       "Objects that the target controls; with `=any`, those with any owner reference to the target; with `=${STATE}`, those that the object of a state controls.",
	"labels":      "Objects whose label has exactly this value. Other forms: `in (A, B)`, `notin (A, B)`, `!=`, the key alone, `!` before it.",
	"fields":      "Objects whose field has this value, by an index of the cache. Other forms, without an index: `in (A, B)`, `notin (A, B)`, `!=`, the path alone, `!` before it.",
	"annotations": "Objects whose annotation has this value. Nothing finds objects by annotations: all that the other selectors find are read.",
}

func code(text string) string { return "```ctrlkit\n" + text + "\n```\n\n" }

// comments returns the lines of a comment without slashes.
func comments(doc []ast.Comment) string {
	if len(doc) == 0 {
		return ""
	}
	var lines []string
	for _, c := range doc {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
	}
	return strings.Join(lines, "\n") + "\n\n"
}
