// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// ownImports are the packages that all generated code may use, by their names in it.
var ownImports = map[string]string{
	"builder": "sigs.k8s.io/controller-runtime/pkg/builder",
	"client":  "sigs.k8s.io/controller-runtime/pkg/client",
	"context": "context",
	"ctrl":    "sigs.k8s.io/controller-runtime",
	"ctrlkit": "github.com/ctrlkit/ctrlkit",
	"errors":  "errors",
	"fmt":     "fmt",
	"logr":    "github.com/go-logr/logr",
	"metav1":  "k8s.io/apimachinery/pkg/apis/meta/v1",
	"state":   "github.com/ctrlkit/ctrlkit/state",
	"strconv": "strconv",
	"testing": "testing",
}

// variables are the receivers, parameters and variables of generated code, which must not hide a
// package.
var variables = []string{
	"action", "b", "ctx", "double", "err", "getter", "impl", "indexer", "items", "list", "logger", "m", "mgr", "name", "namespace", "obj", "opts", "reader", "s",
	"selection", "target",
}

func ownImportNames() []string { return slices.Sorted(maps.Keys(ownImports)) }

// imports are the packages that a file may import.
type imports struct {
	output string            // the path of the generated package, which needs no import
	names  map[string]string // by path
}

// newImports names the packages of the document's kinds.
func newImports(pkg *model.Package, document *model.Document) *imports {
	i := &imports{output: pkg.Path, names: map[string]string{}}
	taken := newScope(predeclared...)
	for _, name := range ownImportNames() {
		i.names[ownImports[name]] = name
		taken[name] = true
	}
	for _, name := range variables {
		taken[name] = true
	}
	packages := map[string]string{}
	for _, manager := range document.Managers {
		packages[manager.Target.Package] = manager.Target.PackageName
		for _, st := range manager.States {
			packages[st.Kind.Package] = st.Kind.PackageName
		}
	}
	for _, importPath := range slices.Sorted(maps.Keys(packages)) {
		if !i.isOutput(importPath) && i.names[importPath] == "" {
			i.names[importPath] = chooseName(importPath, packages[importPath], taken)
		}
	}
	return i
}

// isOutput reports whether a package is the generated one itself.
func (i *imports) isOutput(importPath string) bool {
	return importPath == i.output && importPath != ""
}

// qualify returns the identifier of a package as it is written in the file.
func (i *imports) qualify(importPath, identifier string) string {
	if i.isOutput(importPath) {
		return identifier
	}
	return i.names[importPath] + "." + identifier
}

// all returns the names of all packages that the file may import.
func (i *imports) all() []string { return slices.Sorted(maps.Values(i.names)) }

var version = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// chooseName returns the name of an imported package: its own, or, for packages of API versions,
// the customary one, such as batchv1. Packages with the same name get the name of the directory
// above them as well, and as a last resort a number.
func chooseName(importPath, packageName string, taken scope) string {
	var elements []string
	for element := range strings.SplitSeq(path.Dir(importPath), "/") {
		if word := identifierOf(element); word != "" && word != "." {
			elements = append(elements, word)
		}
	}
	name := packageName
	if version.MatchString(packageName) && len(elements) > 0 {
		name, elements = elements[len(elements)-1]+name, elements[:len(elements)-1]
	}
	for (taken[name] || token.IsKeyword(name) || !token.IsIdentifier(name)) && len(elements) > 0 {
		name, elements = elements[len(elements)-1]+name, elements[:len(elements)-1]
	}
	if !token.IsIdentifier(name) && !token.IsKeyword(name) {
		name = "api" + name
	}
	return taken.take(name, "")
}

// identifierOf returns the letters and digits of a directory's name, in lower case.
func identifierOf(element string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, element)
}

// usedBy returns the import declaration for a file with the given body: the standard library first,
// then the others.
func (i *imports) usedBy(body []byte) string {
	mentioned := qualifiers(body)
	var standard, others []string
	for _, importPath := range slices.SortedFunc(maps.Keys(i.names), cmp.Compare) {
		name := i.names[importPath]
		if !mentioned[name] {
			continue
		}
		spec := fmt.Sprintf("%q", importPath)
		if name != path.Base(importPath) {
			spec = name + " " + spec
		}
		if first, _, _ := strings.Cut(importPath, "/"); ownImports[name] == importPath && !strings.Contains(first, ".") {
			standard = append(standard, spec)
		} else {
			others = append(others, spec)
		}
	}
	return "import (\n" + strings.Join(standard, "\n") + "\n\n" + strings.Join(others, "\n") + "\n)\n"
}

// qualifiers returns the identifiers in Go source that are followed by a dot and do not follow one.
func qualifiers(source []byte) map[string]bool {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", -1, len(source)), source, nil, 0)
	found := map[string]bool{}
	identifier, before := "", token.ILLEGAL
	for {
		_, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return found
		case tok == token.PERIOD && identifier != "":
			found[identifier] = true
		}
		identifier = ""
		if tok == token.IDENT && before != token.PERIOD {
			identifier = literal
		}
		before = tok
	}
}
