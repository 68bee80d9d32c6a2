// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge/registry"
)

const (
	mainDir     = "internal/tools/suite/merge/all" // the package whose test binary has all tests
	externalDir = "zz_external"                    // of the external test package, below a package
	groupDir    = "zz_tests"                       // of what imports the packages that are internal to a directory
	shownPrefix = "zz_"                            // of the test files that are shown as others
)

// A file is one that the go command sees where another is, or none.
type file struct {
	shown   string
	content []byte // nil of a file that it is not to see
}

// generate returns the files of the binary that are not there, in a stable order.
func generate(o Options, packages []*Package) ([]file, error) {
	var files []file
	imported := map[string][]string{} // by the directory of the package that imports them
	for _, p := range packages {
		these, paths, err := p.files()
		if err != nil {
			return nil, fmt.Errorf("the tests of %s: %w", p.ImportPath, err)
		}
		files = append(files, these...)
		for _, name := range paths {
			addImport(imported, o.Module, name)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(imported)) {
		name, file := "zz_tests", "imports.go"
		if group == path.Join(o.Module, mainDir) {
			name, file = "all", "all_test.go"
		}
		relative := filepath.FromSlash(strings.TrimPrefix(group, o.Module))
		files = append(files, generated{shown: filepath.Join(o.Root, relative, file), name: name, blank: imported[group]}.importing(name == "all"))
	}
	// Only test files would make a package that cannot be listed by others.
	files = append(files, file{shown: filepath.Join(o.Root, filepath.FromSlash(mainDir), "all.go"), content: []byte("// Package all has the tests of all packages.\npackage all\n")})
	return files, nil
}

// addImport has a package imported by the main package, by way of one below the directory to which
// it is internal.
func addImport(imported map[string][]string, module, name string) {
	group := path.Join(module, mainDir)
	if i := strings.LastIndex(name, "/internal/"); i >= 0 && name[:i] != module {
		group = name[:i] + "/" + groupDir
		if imported[group] == nil {
			addImport(imported, module, group)
		}
	}
	imported[group] = append(imported[group], name)
}

// files returns the files that make the tests of a package part of the binary, and the packages
// that the binary has to import for them.
func (p *Package) files() (files []file, paths []string, err error) {
	name, external := p.Name, p.Name+"_test"
	if name == "main" { // which cannot be imported
		name = "main_"
		for _, f := range p.GoFiles {
			shown, err := show(p.Dir, f, f, name)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, shown)
		}
		for _, f := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			files = append(files, file{shown: filepath.Join(p.Dir, f)})
		}
	}
	for _, part := range []struct {
		dir, name, path string
		tests           []string
	}{
		{dir: ".", name: name, path: p.ImportPath, tests: p.TestGoFiles},
		{dir: externalDir, name: external, path: p.ImportPath + "/" + externalDir, tests: p.XTestGoFiles},
	} {
		if len(part.tests) == 0 {
			continue
		}
		for _, f := range part.tests {
			shown, err := show(p.Dir, f, filepath.Join(part.dir, shownPrefix+strings.TrimSuffix(f, "_test.go")+".go"), part.name)
			if err != nil {
				return nil, nil, err
			}
			files = append(files, shown)
		}
		tests, err := testsOf(p.Dir, part.tests)
		if err != nil {
			return nil, nil, err
		}
		g := generated{shown: filepath.Join(p.Dir, part.dir), name: part.name, path: p.ImportPath, tests: tests}
		files, paths = append(files, g.registering()...), append(paths, part.path)
	}
	return files, paths, nil
}

// show shows a file in a directory at another place, as one of the package with that name. In all
// that the compiler and the program say of it, it has its own.
func show(dir, name, shown, packageName string) (file, error) {
	own := filepath.Join(dir, name)
	text, err := os.ReadFile(own)
	if err != nil {
		return file{}, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), own, text, parser.PackageClauseOnly)
	if err != nil {
		return file{}, err
	}
	at := int(parsed.Name.Pos()) - 1
	line := fmt.Sprintf("//line %s:1:1\n", own)
	content := slices.Concat([]byte(line), text[:at], []byte(packageName), text[at+len(parsed.Name.Name):])
	return file{shown: filepath.Join(dir, shown), content: content}, nil
}

// found are the names of the tests in some files.
type found struct {
	tests, fuzz []string
	examples    []*doc.Example
	main        bool
}

// testsOf returns the tests in files, by the rules of go test.
func testsOf(dir string, names []string) (found, error) {
	var f found
	var files []*ast.File
	set := token.NewFileSet()
	for _, name := range names {
		parsed, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return f, err
		}
		files = append(files, parsed)
		for _, d := range parsed.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || function.Recv != nil {
				continue
			}
			switch name := function.Name.Name; {
			case name == "TestMain" && takes(function, "M"):
				f.main = true
			case isTest(name, "Test") && takes(function, "T"):
				f.tests = append(f.tests, name)
			case isTest(name, "Fuzz") && takes(function, "F"):
				f.fuzz = append(f.fuzz, name)
			}
		}
	}
	for _, e := range doc.Examples(files...) {
		if e.Output != "" || e.EmptyOutput {
			f.examples = append(f.examples, e)
		}
	}
	slices.SortStableFunc(f.examples, func(a, b *doc.Example) int { return a.Order - b.Order })
	return f, nil
}

// isTest reports whether a function has the name of a test, such as TestX, but not Testimony.
func isTest(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z')
}

// takes reports whether a function has one parameter, of the type *testing.T or another of that
// package.
func takes(f *ast.FuncDecl, name string) bool {
	if f.Type.Params == nil || len(f.Type.Params.List) != 1 || len(f.Type.Params.List[0].Names) > 1 || f.Type.TypeParams != nil {
		return false
	}
	pointer, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	switch of := pointer.X.(type) {
	case *ast.Ident:
		return of.Name == name
	case *ast.SelectorExpr:
		return of.Sel.Name == name
	}
	return false
}

// generated is a file that registers tests, or imports packages that do.
type generated struct {
	shown string
	name  string   // of its package
	blank []string // imports
	path  string   // whose tests it registers
	tests found
}

// importing returns the file that imports packages, and that has the TestMain of the binary.
func (g generated) importing(main bool) file {
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n\nimport (\n", g.name)
	if main {
		fmt.Fprintf(&b, "\t\"testing\"\n\n\t%q\n", registryPath)
	}
	for _, name := range g.blank {
		fmt.Fprintf(&b, "\t_ %q\n", name)
	}
	fmt.Fprint(&b, ")\n")
	if main {
		fmt.Fprint(&b, "\nfunc TestMain(m *testing.M) { registry.Main(m) }\n")
	}
	return file{shown: g.shown, content: b.Bytes()}
}

// registering returns the file before the test files of a package, as the compiler orders them by
// name, and the file after them: variables get their values, and functions named init are called,
// in that order.
func (g generated) registering() []file {
	begin := fmt.Sprintf("package %s\n\nimport zzRegistry %q\n\nvar _ = zzRegistry.Enter(%q)\n", g.name, registryPath, g.path)
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n\nimport (\n\tzzTesting \"testing\"\n\n\tzzRegistry %q\n)\n\nfunc init() {\n\tzzRegistry.Leave()\n", g.name, registryPath)
	fmt.Fprintf(&b, "\tzzRegistry.Add(%q, zzRegistry.Tests{\n\t\tTests: []zzTesting.InternalTest{\n", g.path)
	for _, name := range g.tests.tests {
		fmt.Fprintf(&b, "\t\t\t{Name: %q, F: %s},\n", name, name)
	}
	fmt.Fprint(&b, "\t\t},\n\t\tFuzz: []zzTesting.InternalFuzzTarget{\n")
	for _, name := range g.tests.fuzz {
		fmt.Fprintf(&b, "\t\t\t{Name: %q, Fn: %s},\n", name, name)
	}
	fmt.Fprint(&b, "\t\t},\n\t\tExamples: []zzTesting.InternalExample{\n")
	for _, e := range g.tests.examples {
		fmt.Fprintf(&b, "\t\t\t{Name: %q, F: %s, Output: %q, Unordered: %t},\n", "Example"+e.Name, "Example"+e.Name, e.Output, e.Unordered)
	}
	fmt.Fprint(&b, "\t\t},\n")
	if g.tests.main {
		fmt.Fprint(&b, "\t\tMain: TestMain,\n")
	}
	fmt.Fprint(&b, "\t})\n}\n")
	return []file{{shown: filepath.Join(g.shown, shownPrefix+".go"), content: []byte(begin)}, {shown: filepath.Join(g.shown, "zzz.go"), content: b.Bytes()}}
}

var registryPath = reflect.TypeFor[registry.Tests]().PkgPath()
