// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"go/token"
	"go/types"
	"reflect"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// An Analysis is all that is known of the documents of a package, with mistakes or without.
type Analysis struct {
	// Package lacks what is wrong. It is complete if the list has no error.
	Package *model.Package
	List    diag.List
	// Pending are the paths of packages of which the loader returned nothing, sorted. What needs
	// them is not in the list, except that they cannot be loaded.
	Pending []string

	checker *checker
}

// Analyze checks documents as [Check] does, and also returns what is known of documents that have
// mistakes, or whose packages are not loaded.
func Analyze(ctx context.Context, in Input, loader Loader) (*Analysis, error) {
	c := declare(in)
	paths := c.packagePaths()
	loaded, err := loader.Load(ctx, in.Dir, paths)
	if err != nil {
		return nil, err
	}
	c.packages = loaded
	a := &Analysis{Package: &model.Package{Name: in.Name, Path: in.Path}, checker: c}
	a.Pending = slices.DeleteFunc(paths, func(path string) bool { return loaded[path] != nil })
	for _, d := range c.documents {
		a.Package.Documents = append(a.Package.Documents, c.document(d))
	}
	c.managerCollisions()
	c.noteSingles(a.Package)
	for _, d := range c.documents {
		d.warnUnused()
		a.List = append(a.List, d.list...)
	}
	a.List = a.List.Sort()
	return a, nil
}

// document returns the document with the name, nil if there is none.
func (a *Analysis) document(file string) *document {
	for _, d := range a.checker.documents {
		if d.file.Name == file {
			return d
		}
	}
	return nil
}

// Tree returns the syntax tree of a document, nil if there is no such document.
func (a *Analysis) Tree(file string) *ast.File {
	if d := a.document(file); d != nil {
		return d.file
	}
	return nil
}

// A Kind is a kind that a document names, with its Go type.
type Kind struct {
	model.Kind
	// Source is the Go package or the definitions that the type is from.
	Source string
	// Doc is the description in a definition.
	Doc  string
	typ  *kindType
	fset *token.FileSet
}

// Kind returns the kind that a word of a document means, an alias or another name, and reports
// whether its type is known.
func (a *Analysis) Kind(file, word string) (Kind, bool) {
	d := a.document(file)
	if d == nil {
		return Kind{}, false
	}
	ref := d.refs[word]
	for _, alias := range d.aliasOrder {
		if alias.name.Text == word || ref == nil && alias.kind.Text == word {
			ref = d.refs["alias "+alias.name.Text]
		}
	}
	if ref == nil || ref.typ == nil {
		return Kind{}, false
	}
	kind := Kind{Kind: ref.typ.Kind, Source: sourceOf(ref.path), typ: ref.typ}
	if p := a.checker.packages[ref.path]; p != nil {
		kind.fset, kind.Doc = p.Fset, p.Facts.Docs[kind.Kind.Kind]
	}
	return kind, true
}

// Position returns where the Go type of the kind is declared. It is not valid if that is not known.
func (k Kind) Position() token.Position { return k.position(k.typ.obj.Pos()) }

func (k Kind) position(pos token.Pos) token.Position {
	if k.fset == nil {
		return token.Position{}
	}
	return k.fset.Position(pos)
}

// A Field is a place in the objects of a kind: the object itself, or a field.
type Field struct {
	// Name is that of the field, and Type that of the Go type.
	Name, Type string
	// Position is where the Go field is declared. It is not valid if that is not known.
	Position token.Position
	// Doc is the description in a definition.
	Doc string
	// Text reports whether the field can be text; List whether it is a list; Map whether it is a map
	// of texts.
	Text, List, Map bool
	// Values are the constants that the Go package has for the type of the field.
	Values []string

	kind Kind
	walk goWalk
}

// Root returns the object itself.
func (k Kind) Root() Field {
	return Field{Type: k.Kind.Kind, Position: k.Position(), kind: k, walk: goWalk{current: k.typ.obj.Type()}}
}

// Step returns the field with a name as references write it, with [] after it for the elements of a
// list or with the key of a map, and reports whether there is one.
func (f Field) Step(name string) (Field, bool) {
	plain, key, brackets := ast.Word{Text: name}.Step()
	walk := f.copied()
	if walk.step(plain) != nil || brackets && !walk.brackets(key) {
		return Field{}, false
	}
	return f.at(name, walk), true
}

// JSONStep returns the field with a name of the JSON form, and reports whether there is one.
func (f Field) JSONStep(name string) (Field, bool) {
	walk := f.copied()
	if _, ok := walk.jsonStep(name); !ok || collection(f.walk.current) != "" {
		return Field{}, false
	}
	return f.at(name, walk), true
}

// Fields returns the fields below this one as references write them, in the order of the type.
func (f Field) Fields() []Field {
	s, ok := deref(f.walk.current).Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	return f.each(fieldNames(s), Field.Step)
}

// JSONFields returns the fields below this one by the names of the JSON form.
func (f Field) JSONFields() []Field {
	s, ok := deref(f.walk.current).Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	var names []string
	jsonIndex(s, "", &names, 0)
	return f.each(names, Field.JSONStep)
}

func (f Field) each(names []string, step func(Field, string) (Field, bool)) []Field {
	var fields []Field
	seen := map[string]bool{}
	for _, name := range names {
		if next, ok := step(f, name); ok && !seen[name] {
			seen[name] = true
			fields = append(fields, next)
		}
	}
	return fields
}

func (f Field) copied() goWalk {
	walk := f.walk
	walk.steps = slices.Clone(walk.steps)
	return walk
}

// at describes the end of a walk.
func (f Field) at(name string, walk goWalk) Field {
	next := Field{Name: name, Type: typeName(walk.current), kind: f.kind, walk: walk}
	_, problem := textOf(walk.current)
	next.Text = problem == ""
	_, next.List = walk.current.Underlying().(*types.Slice)
	within := goWalk{current: walk.current, steps: make([]model.Step, 1)}
	next.Map = within.key("key")
	if s, ok := deref(f.walk.current).Underlying().(*types.Struct); ok {
		next.Position = f.kind.position(fieldPos(deref(f.walk.current), s, name))
		plain, _, _ := ast.Word{Text: name}.Step()
		next.Doc = description(s, plain)
	}
	if named, ok := types.Unalias(deref(walk.current)).(*types.Named); ok && named.Obj().Pkg() != nil {
		next.Values = constantsOf(named.Obj().Pkg(), named.Obj().Name())
	}
	return next
}

// description returns that of a field of a definition.
func description(s *types.Struct, name string) string {
	for i := range s.NumFields() {
		if f := s.Field(i); isKey(f) && f.Name() == name {
			return reflect.StructTag(s.Tag(i)).Get(docTag)
		}
	}
	return ""
}

// fieldPos returns where the field with a Go or JSON name is declared.
func fieldPos(t types.Type, s *types.Struct, name string) token.Pos {
	plain, _, _ := ast.Word{Text: name}.Step()
	if obj, _, _ := types.LookupFieldOrMethod(t, true, packageOf(t), plain); obj != nil {
		return obj.Pos()
	}
	var names []string
	pos := token.NoPos
	for _, i := range jsonIndex(s, plain, &names, 0) {
		f := s.Field(i)
		pos = f.Pos()
		s, _ = deref(f.Type()).Underlying().(*types.Struct)
	}
	return pos
}

// A KindName is a way to write a kind in a document.
type KindName struct {
	// Name is what is written, Source the Go package or the definitions that the kind is from, and
	// Means the kind that an alias stands for.
	Name, Source, Means string
}

// KindNames returns the names of kinds that a document can use: its aliases, built-in kinds, and
// those of the packages that it binds, as far as they are loaded.
func (a *Analysis) KindNames(file string) []KindName {
	d := a.document(file)
	if d == nil {
		return nil
	}
	var names []KindName
	for _, alias := range d.aliasOrder {
		name := KindName{Name: alias.name.Text, Means: alias.kind.Text}
		if ref := d.refs["alias "+alias.name.Text]; ref != nil {
			name.Source = sourceOf(ref.path)
		}
		names = append(names, name)
	}
	for _, b := range d.bindOrder {
		p := a.checker.packages[b.key(d.dir)]
		if b.bad || p == nil || p.Types == nil {
			continue
		}
		for _, kind := range kindNames(p) {
			names = append(names, KindName{Name: b.word.Text + "/" + kind, Source: b.path.Text})
		}
	}
	for _, kind := range builtins.kinds {
		rows := builtins.byKind[kind]
		for _, row := range rows {
			name := KindName{Name: kind, Source: row.Path}
			if len(rows) > 1 {
				name.Name = row.label() + "/" + kind
			}
			names = append(names, name)
		}
	}
	return names
}

// BuiltinPackages returns the Go packages of Kubernetes by the groups and versions that they hold,
// as binds write them.
func BuiltinPackages() map[string]string {
	packages := map[string]string{}
	for label, row := range builtins.byLabel {
		packages[label] = row.Path
	}
	return packages
}
