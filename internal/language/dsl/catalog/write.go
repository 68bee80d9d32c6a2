// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"go/constant"
	"go/format"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"golang.org/x/tools/txtar"
)

// Write returns the text of a catalog with all that the packages export, and with the types of other
// packages that their fields have.
//
//   - A field that is not exported is left out.
//   - A method has its name only, except String() string: that makes text of a value.
//   - An interface is empty.
func Write(packages []*types.Package) ([]byte, error) {
	w := &writer{packages: map[*types.Package]*source{}, seen: map[types.Object]bool{}}
	for _, pkg := range packages {
		for _, name := range pkg.Scope().Names() {
			if obj := pkg.Scope().Lookup(name); obj.Exported() {
				w.object(obj)
			}
		}
	}
	archive := &txtar.Archive{}
	sorted := slices.SortedFunc(maps.Keys(w.packages), func(a, b *types.Package) int { return cmp.Compare(a.Path(), b.Path()) })
	for _, pkg := range sorted {
		text, err := format.Source(w.packages[pkg].text(pkg))
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", pkg.Path(), err)
		}
		archive.Files = append(archive.Files, txtar.File{Name: pkg.Path(), Data: text})
	}
	return txtar.Format(archive), nil
}

// A writer follows types to those that they have.
type writer struct {
	packages map[*types.Package]*source
	seen     map[types.Object]bool
}

// A source is the Go text of one package.
type source struct {
	body    bytes.Buffer
	imports []*types.Package // each is named by its index, since two may have one name
}

func (s *source) text(pkg *types.Package) []byte {
	var all bytes.Buffer
	fmt.Fprintf(&all, "package %s\n", pkg.Name())
	for i, imported := range s.imports {
		fmt.Fprintf(&all, "import p%d %q\n", i, imported.Path())
	}
	all.Write(s.body.Bytes())
	return all.Bytes()
}

func (w *writer) source(pkg *types.Package) *source {
	s := w.packages[pkg]
	if s == nil {
		s = &source{}
		w.packages[pkg] = s
	}
	return s
}

// object writes a constant that is text, or a type, and all that it has.
func (w *writer) object(obj types.Object) {
	if w.seen[obj] || obj.Pkg() == nil {
		return
	}
	w.seen[obj] = true
	s := w.source(obj.Pkg())
	switch obj := obj.(type) {
	case *types.Const:
		if named, ok := obj.Type().(*types.Named); ok && obj.Val().Kind() == constant.String && named.Obj().Pkg() == obj.Pkg() {
			fmt.Fprintf(&s.body, "const %s %s = %s\n", obj.Name(), named.Obj().Name(), obj.Val().ExactString())
			w.object(named.Obj())
		}
	case *types.TypeName:
		if named, ok := obj.Type().(*types.Named); ok && !obj.IsAlias() {
			fmt.Fprintf(&s.body, "type %s %s\n", obj.Name(), w.text(s, obj.Pkg(), named.Underlying()))
			s.methods(named)
			return
		}
		fmt.Fprintf(&s.body, "type %s = %s\n", obj.Name(), w.text(s, obj.Pkg(), types.Unalias(obj.Type())))
	}
}

// methods writes the methods that are declared for a type.
func (s *source) methods(named *types.Named) {
	if types.IsInterface(named) {
		return
	}
	for m := range named.Methods() {
		if !token.IsExported(m.Name()) {
			continue
		}
		sig := m.Signature()
		star, result := "", ""
		if _, ok := sig.Recv().Type().(*types.Pointer); ok {
			star = "*"
		}
		if m.Name() == "String" && sig.Params().Len() == 0 && sig.Results().Len() == 1 {
			result = " string"
		}
		fmt.Fprintf(&s.body, "func (%s%s) %s()%s\n", star, named.Obj().Name(), m.Name(), result)
	}
}

// text returns a type as a file of the package writes it, and writes the types that it names.
func (w *writer) text(s *source, pkg *types.Package, t types.Type) string {
	switch t := t.(type) {
	case *types.Alias:
		return w.name(s, pkg, t.Obj())
	case *types.Named:
		return w.name(s, pkg, t.Obj())
	case *types.Basic:
		return t.Name()
	case *types.Pointer:
		return "*" + w.text(s, pkg, t.Elem())
	case *types.Slice:
		return "[]" + w.text(s, pkg, t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), w.text(s, pkg, t.Elem()))
	case *types.Map:
		return "map[" + w.text(s, pkg, t.Key()) + "]" + w.text(s, pkg, t.Elem())
	case *types.Struct:
		return w.fields(s, pkg, t)
	case *types.Signature:
		return "func()"
	case *types.Chan:
		return "chan int"
	}
	return "interface{}"
}

func (w *writer) name(s *source, pkg *types.Package, obj *types.TypeName) string {
	if obj.Pkg() == nil { // error, any
		return obj.Name()
	}
	if named, ok := obj.Type().(*types.Named); ok && named.TypeParams() != nil {
		return "struct{}"
	}
	w.object(obj)
	if obj.Pkg() == pkg {
		return obj.Name()
	}
	i := slices.Index(s.imports, obj.Pkg())
	if i < 0 {
		i = len(s.imports)
		s.imports = append(s.imports, obj.Pkg())
	}
	return fmt.Sprintf("p%d.%s", i, obj.Name())
}

func (w *writer) fields(s *source, pkg *types.Package, t *types.Struct) string {
	var text bytes.Buffer
	text.WriteString("struct {\n")
	for i := range t.NumFields() {
		f := t.Field(i)
		if !f.Exported() {
			continue
		}
		if !f.Embedded() {
			text.WriteString(f.Name() + " ")
		}
		text.WriteString(w.text(s, pkg, f.Type()))
		if tag := t.Tag(i); tag != "" {
			fmt.Fprintf(&text, " %q", tag)
		}
		text.WriteString("\n")
	}
	return text.String() + "}"
}
