// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/mod/modfile"
)

// Extension is the file extension of documents.
const Extension = ".ctrlkit"

// OldExtension is that of documents of the ctrlkit RFC. They are read like all others.
const OldExtension = ".cm"

// IsDocument reports whether a file of this name is a document.
func IsDocument(name string) bool {
	return strings.HasSuffix(name, Extension) || strings.HasSuffix(name, OldExtension)
}

// ErrNoDocuments is the error of [Read] for a directory without documents.
var ErrNoDocuments = errors.New("no " + Extension + " documents")

// Read reads the documents of one directory: the given files, or all of them if none is given.
// Diagnostics name the files as they are given here.
func Read(dir string, files ...string) (Input, error) {
	if len(files) == 0 {
		var err error
		if files, err = documentsIn(dir); err != nil {
			return Input{}, err
		}
	}
	in := Input{Dir: dir}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return Input{}, fmt.Errorf("reading document: %w", err)
		}
		in.Sources = append(in.Sources, Source{File: file, Text: text})
	}
	in.Name, in.Path = GoPackage(dir)
	return in, nil
}

func documentsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading directory: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && IsDocument(e.Name()) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoDocuments)
	}
	return files, nil
}

// GoPackage returns the name and the import path of the Go package in a directory.
//
//   - The name is that in its Go files, or else made from the name of the directory.
//   - The path follows from the go.mod at or above the directory. Without one it is empty.
func GoPackage(dir string) (name, importPath string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	importPath = importPathOf(abs)
	if name = packageClause(abs); name != "" {
		return name, importPath
	}
	base := filepath.Base(abs)
	if importPath != "" {
		base = path.Base(importPath)
	}
	return packageName(base), importPath
}

func importPathOf(dir string) string {
	root, _ := ModuleRoot(dir)
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return ""
	}
	module := modfile.ModulePath(text)
	rel, err := filepath.Rel(root, dir)
	if module == "" || err != nil {
		return ""
	}
	return path.Join(module, filepath.ToSlash(rel))
}

// ModuleRoot returns the directory at or above dir that has a go.mod: the root of the Go module
// that dir is in, for which packages are loaded. It returns dir and false if there is none.
func ModuleRoot(dir string) (root string, found bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, false
	}
	for root := abs; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root, true
		}
		if filepath.Dir(root) == root {
			return dir, false
		}
	}
}

// packageClause returns the name of the package in the first Go file of the directory that is not a
// test.
func packageClause(dir string) string {
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	slices.Sort(names)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		if err == nil && !strings.HasSuffix(name, "_test.go") && file.Name.Name != "documentation" {
			return file.Name.Name
		}
	}
	return ""
}

// packageName returns a name for a Go package: the letters and digits of base, in lower case.
func packageName(base string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, base)
	name = strings.TrimLeftFunc(name, unicode.IsDigit)
	if !token.IsIdentifier(name) {
		return "manager"
	}
	return name
}
