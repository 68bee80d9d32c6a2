// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

// A document is the present text of a document with its tree. It is not changed: an edit makes
// another one.
type document struct {
	*text
	path     string
	uri      string
	version  *int // nil for a document that the editor has not opened
	tree     *ast.File
	mistakes diag.List
}

func newDocument(path, uri string, version *int, t *text) *document {
	d := &document{text: t, path: path, uri: uri, version: version}
	d.tree, d.mistakes = parser.Parse(path, []byte(t.content))
	return d
}

// A directory is the documents that become one Go package.
type directory struct {
	path, root string // root is that of the Go module
	name       string // of the Go package
	importPath string
	documents  map[string]*document // by path
	analysis   *check.Analysis
	// sound is the model of the last texts that had no error, nil if there were none.
	sound *model.Package
	// list is what is wrong, without what is not known before the packages are loaded.
	list diag.List
}

// A workspace is the documents of an editor, with those beside them.
type workspace struct {
	packages *packageCache
	draw     func(w io.Writer, format string, decls []*ast.Decl) error
	utf8     bool
	dirs     map[string]*directory
	goFiles  goFiles
}

func newWorkspace(o Options) *workspace {
	return &workspace{packages: newPackageCache(o.Loader), draw: o.Draw, dirs: map[string]*directory{}, goFiles: goFiles{}}
}

// find returns a document and its directory, nil if it is not there.
func (w *workspace) find(path string) (*document, *directory) {
	dir := w.dirs[dirOf(path)]
	if dir == nil || dir.documents[path] == nil {
		return nil, nil
	}
	return dir.documents[path], dir
}

// open begins a document of the editor. It returns nil for a Go file.
func (w *workspace) open(ctx context.Context, uri string, version int, content string) *directory {
	path := pathOf(uri)
	if strings.HasSuffix(path, ".go") {
		return nil // its file counts
	}
	dir := w.dirs[dirOf(path)]
	if dir == nil {
		dir = &directory{path: dirOf(path), documents: map[string]*document{}}
		w.dirs[dir.path] = dir
	}
	dir.documents[path] = newDocument(path, uri, &version, newText(content, w.utf8))
	w.refresh(ctx, dir)
	return dir
}

// change applies changes of the editor to an open document.
func (w *workspace) change(ctx context.Context, path string, version int, changes []contentChange) *directory {
	old, dir := w.find(path)
	if old == nil {
		return nil
	}
	t := old.text
	for _, c := range changes {
		t = t.changed(c)
	}
	dir.documents[path] = newDocument(path, old.uri, &version, t)
	w.analyze(ctx, dir)
	return dir
}

// close ends a document of the editor: the file counts again.
func (w *workspace) close(ctx context.Context, path string) *directory {
	d, dir := w.find(path)
	if d == nil {
		return nil
	}
	delete(dir.documents, path)
	if !slices.ContainsFunc(slices.Collect(maps.Values(dir.documents)), (*document).isOpen) {
		delete(w.dirs, dir.path)
		return nil
	}
	w.refresh(ctx, dir)
	return dir
}

// dirOf returns the directory of a document. One that has not been saved is alone in a directory of
// its name.
func dirOf(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	return filepath.Dir(path)
}

func (d *document) isOpen() bool { return d.version != nil }

// refresh reads what is not open in the editor again, and analyzes the documents.
func (w *workspace) refresh(ctx context.Context, dir *directory) {
	maps.DeleteFunc(dir.documents, func(_ string, d *document) bool { return !d.isOpen() })
	dir.root, _ = check.ModuleRoot(dir.path)
	read, err := check.Read(dir.path)
	if err != nil { // no document has been saved, or the directory is not there
		read.Name, read.Path = check.GoPackage(dir.path)
	}
	dir.name, dir.importPath = read.Name, read.Path
	for _, source := range read.Sources {
		if dir.documents[source.File] == nil {
			dir.documents[source.File] = newDocument(source.File, uriOf(source.File), nil, newText(string(source.Text), w.utf8))
		}
	}
	w.analyze(ctx, dir)
}

// analyze checks the documents of a directory with the packages that are loaded, and has the others
// loaded.
func (w *workspace) analyze(ctx context.Context, dir *directory) {
	in := check.Input{Dir: dir.root, Name: dir.name, Path: dir.importPath}
	for _, path := range slices.Sorted(maps.Keys(dir.documents)) {
		d := dir.documents[path]
		in.Sources = append(in.Sources, check.Source{File: path, Text: []byte(d.content), Tree: d.tree, Mistakes: d.mistakes})
	}
	a, err := check.Analyze(ctx, in, w.packages)
	if err != nil {
		return // the cache returns no errors
	}
	dir.analysis, dir.list = a, a.List
	if len(a.Pending) > 0 {
		dir.list = slices.DeleteFunc(slices.Clone(a.List), func(d diag.Diagnostic) bool { return d.Code == diag.PackageNotLoaded })
	} else if !a.List.HasErrors() {
		dir.sound = a.Package
	}
}

// loaded analyzes what packages of a module have been loaded for, and returns it.
func (w *workspace) loaded(ctx context.Context, root string) []*directory {
	var dirs []*directory
	for _, path := range slices.Sorted(maps.Keys(w.dirs)) {
		if dir := w.dirs[path]; dir.root == root {
			w.analyze(ctx, dir)
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// changedOnDisk takes note of files that have changed outside of the editor, and returns the
// directories with documents among them.
func (w *workspace) changedOnDisk(ctx context.Context, paths []string) []*directory {
	var dirs []*directory
	for _, path := range paths {
		if dir := w.dirs[dirOf(path)]; dir != nil && check.IsDocument(path) && !slices.Contains(dirs, dir) {
			w.refresh(ctx, dir)
			dirs = append(dirs, dir)
		}
	}
	if slices.ContainsFunc(paths, func(path string) bool { return !check.IsDocument(path) }) {
		for _, dir := range w.dirs {
			w.packages.forget(ctx, dir.root)
		}
	}
	return dirs
}
