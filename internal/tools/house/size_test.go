// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"cmp"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What an author has to hold is limited, as the length of functions and files is: the packages for
// import, their exported names, and those with methods and fields. A limit goes down when there are
// fewer, and up only with a reason in the message of the commit.
const (
	mostPackages = 20
	mostNames    = 862
	mostMembers  = 1681
)

func TestSizeOfTheAPI(t *testing.T) {
	inRoot(t)
	var packages, names, members int
	for _, p := range ownPackages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if isHidden(dir) {
			continue
		}
		packages++
		n, m := sizeOf(t, p.ImportPath, dir)
		names, members = names+n, members+m
		t.Logf("%-18s %3d names, %4d with methods and fields", cmp.Or(dir, "."), n, m)
	}
	t.Logf("%d packages, %d names, %d with methods and fields", packages, names, members)
	for _, limit := range []struct {
		of         string
		have, most int
	}{{"packages for import", packages, mostPackages}, {"exported names", names, mostNames}, {"exported names with methods and fields", members, mostMembers}} {
		if limit.have > limit.most {
			t.Errorf("%d %s, the limit is %d: unexport what no author names, or say why the limit goes up", limit.have, limit.of, limit.most)
		}
	}
}

// isHidden reports whether a package is not for import.
func isHidden(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"), func(part string) bool {
		return part == "internal" || part == "cmd" || part == "testdata"
	})
}

// sizeOf counts the exported types, functions, constants and variables of a package, and these with
// exported methods and fields.
func sizeOf(t *testing.T, importPath, dir string) (names, members int) {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_windows.go") || strings.HasSuffix(path, "_other.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		must(t, err)
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, importPath)
	must(t, err)
	values := func(all []*doc.Value) (n int) {
		for _, v := range all {
			n += len(slices.DeleteFunc(slices.Clone(v.Names), func(name string) bool { return !ast.IsExported(name) }))
		}
		return n
	}
	names = values(p.Consts) + values(p.Vars) + len(p.Funcs)
	for _, typ := range p.Types {
		names += 1 + values(typ.Consts) + values(typ.Vars) + len(typ.Funcs)
		members += len(typ.Methods) + fieldsOf(typ.Decl)
	}
	return names, names + members
}

// fieldsOf counts the exported fields of a struct and the methods of an interface.
func fieldsOf(decl *ast.GenDecl) (n int) {
	for _, spec := range decl.Specs {
		ts, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		var list *ast.FieldList
		switch typ := ts.Type.(type) {
		case *ast.StructType:
			list = typ.Fields
		case *ast.InterfaceType:
			list = typ.Methods
		default:
			continue
		}
		for _, f := range list.List {
			for _, name := range f.Names {
				if name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}
