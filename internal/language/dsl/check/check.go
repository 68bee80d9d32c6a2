// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"go/token"
	"maps"
	"path/filepath"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

// An Input is the documents that make one Go package.
type Input struct {
	// Dir is a directory in the Go module of the documents. Go packages are loaded from there.
	Dir string
	// Name and Path are the name and the import path of the Go package. The path may be empty.
	Name, Path string
	Sources    []Source
}

// A Source is the text of one document.
type Source struct {
	// File is the name of the document in diagnostics.
	File string
	Text []byte
	// Tree and Mistakes are what the parser returns for the text. The tree is nil if it has not been
	// parsed.
	Tree     *ast.File
	Mistakes diag.List
}

// Check returns the model of the documents, and a diagnostic for everything that is wrong with
// them.
//
//   - The package is nil when the list has an error.
//   - Check reads no files. It calls the loader once, for all packages together.
//   - The error is that of the loader.
func Check(ctx context.Context, in Input, loader Loader) (*model.Package, diag.List, error) {
	a, err := Analyze(ctx, in, loader)
	if err != nil {
		return nil, nil, err
	}
	if a.List.HasErrors() {
		return nil, a.List, nil
	}
	return a.Package, a.List, nil
}

// declare parses the documents, and declares what they name.
func declare(in Input) *checker {
	c := &checker{managers: map[string]*declaredManager{}, path: in.Path, ownTypes: map[string]bool{}}
	sources, described := slices.Clone(in.Sources), map[string]bool{}
	slices.SortFunc(sources, func(a, b Source) int { return cmp.Compare(a.File, b.File) })
	for _, source := range sources {
		if source.Tree == nil {
			source.Tree, source.Mistakes = parser.Parse(source.File, source.Text)
		}
		c.documents = append(c.documents, newDocument(source.Tree, slices.Clip(source.Mistakes), in.Path, described))
	}
	for _, d := range c.documents {
		d.declare()
	}
	return c
}

// Preload loads the packages of all inputs into the cache, with one call of its loader for all that
// have the same Dir: the go command needs as long for one package as for many. [Check] then calls
// the loader no more. The error is that of the loader, for the first input that it is about.
func (c *Cache) Preload(ctx context.Context, inputs []Input) error {
	paths := map[string][]string{}
	var first []Input // of each Dir
	for _, in := range inputs {
		if _, ok := paths[in.Dir]; !ok {
			first = append(first, in)
		}
		paths[in.Dir] = append(paths[in.Dir], declare(in).packagePaths()...)
	}
	for _, in := range first {
		all := paths[in.Dir]
		slices.Sort(all)
		if _, err := c.Load(ctx, in.Dir, slices.Compact(all)); err != nil {
			return fmt.Errorf("checking %s: %w", filepath.Dir(in.Sources[0].File), err)
		}
	}
	return nil
}

// A checker checks the documents of one package.
type checker struct {
	documents []*document
	packages  map[string]*Package
	// managers are the managers of all documents by name, order their names in the order of
	// declaration.
	managers map[string]*declaredManager
	order    []string
	// path is the import path of the Go package, ownTypes the names of the kinds in use that are
	// declared in it.
	path     string
	ownTypes map[string]bool
}

// noteSingles notes the states that are single objects, if the documents have no errors.
func (c *checker) noteSingles(result *model.Package) {
	if slices.ContainsFunc(c.documents, func(d *document) bool { return d.list.HasErrors() }) {
		return
	}
	singles := result.Singles()
	for i, document := range result.Documents {
		for _, manager := range document.Managers {
			for _, st := range manager.States {
				if !singles[st.Kind.Key()] {
					continue
				}
				end := st.Pos
				end.Offset, end.Column = end.Offset+len(st.Name), end.Column+len(st.Name)
				c.documents[i].list = append(c.documents[i].list, diag.Diagnostic{
					Code: diag.SingleObject, Start: st.Pos, End: end,
					Message: fmt.Sprintf("state %s is one %s with a literal name: the rule has that name, and the cache can be limited to it", st.Name, st.Kind.Kind),
					Hint:    fmt.Sprintf("call Cache%s with the options of ctrl.NewManager", capitalized(manager.Name)),
				})
			}
		}
	}
}

// packagePaths returns the import paths that the documents need, sorted.
func (c *checker) packagePaths() []string {
	set := map[string]bool{}
	for _, d := range c.documents {
		for path := range d.paths {
			set[path] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// A scopedName is a name and the place where it was declared first.
type scopedName struct {
	document *document
	word     ast.Word
}

// A declaredManager is a manager with its actions.
type declaredManager struct {
	scopedName
	actions []string
}

// related returns the place of the first declaration.
func (n *scopedName) related() []diag.Related {
	return []diag.Related{n.document.related(n.word, "first declared here")}
}

// A document is one file while it is checked.
type document struct {
	file *ast.File
	dir  string // where the file is
	list diag.List
	// importPath is that of the Go package that is generated, if it is known.
	importPath string
	binds      map[string]*binding
	aliases    map[string]*alias
	// bindOrder and aliasOrder keep the order of the document.
	bindOrder  []*binding
	aliasOrder []*alias
	// refs are the kinds that the document names, by what it writes.
	refs map[string]*kindRef
	// paths are the import paths of the packages that are needed.
	paths map[string]bool
	// notLoaded are those of them that have been reported as missing.
	notLoaded map[string]bool
	// described are the problems of the whole module that a document of the package reports.
	described map[string]bool
	// unused are the warnings about states that no action takes and managers without actions.
	unused []diag.Diagnostic
}

type binding struct {
	word ast.Word // the group and version
	path ast.Word
	used bool
	bad  bool
}

type alias struct {
	name ast.Word
	kind ast.Word
	used bool
}

func newDocument(file *ast.File, list diag.List, importPath string, described map[string]bool) *document {
	return &document{
		file:       file,
		dir:        filepath.Dir(file.Name),
		list:       list,
		importPath: importPath,
		binds:      map[string]*binding{},
		aliases:    map[string]*alias{},
		refs:       map[string]*kindRef{},
		paths:      map[string]bool{},

		notLoaded: map[string]bool{},
		described: described,
	}
}

func (d *document) report(code diag.Code, at ast.Node, message, hint string, related ...diag.Related) {
	d.list = append(d.list, d.diagnostic(code, at, message, hint, related...))
}

func (d *document) diagnostic(code diag.Code, at ast.Node, message, hint string, related ...diag.Related) diag.Diagnostic {
	start, end := d.file.Position(at)
	return diag.Diagnostic{Code: code, Start: start, End: end, Message: message, Hint: hint, Related: related}
}

// related returns a further place that a diagnostic refers to.
func (d *document) related(at ast.Node, message string) diag.Related {
	start, end := d.file.Position(at)
	return diag.Related{Start: start, End: end, Message: message}
}

// position returns where n begins.
func (d *document) position(n ast.Node) token.Position {
	start, _ := d.file.Position(n)
	return start
}

// document checks a document whose binds and aliases are known.
func (c *checker) document(d *document) *model.Document {
	result := &model.Document{File: filepath.Base(d.file.Name)}
	c.checkBinds(d)
	c.checkAliases(d)
	for decl := range ast.All[*ast.Decl](d.file) {
		result.Managers = append(result.Managers, c.manager(d, decl))
	}
	return result
}

// warnUnused reports what is not used, unless the document has errors: then it may be a consequence
// of them.
func (d *document) warnUnused() {
	if d.list.HasErrors() {
		return
	}
	if !slices.ContainsFunc(d.file.Items, isStatement) {
		d.report(diag.EmptyDocument, ast.Range{}, "document is empty", "declare a manager: decl NAME for KIND { }")
	}
	for _, b := range d.bindOrder {
		// The packages of Kubernetes are bound anyway. A document may bind them for its readers.
		if !b.used && lookupBuiltin(b.path.Text) == nil {
			d.report(diag.UnusedBind, b.word, "bind of "+b.word.Text+" is not used", "remove it, or write a kind of it")
		}
	}
	for _, a := range d.aliasOrder {
		if !a.used {
			d.report(diag.UnusedAlias, a.name, "alias "+a.name.Text+" is not used", "remove it, or write it for "+a.kind.Text)
		}
	}
	d.list = append(d.list, d.unused...)
}

// isStatement reports whether an item is more than a comment.
func isStatement(item ast.Item) bool {
	_, isComment := item.(*ast.Note)
	return !isComment
}

// docLines returns the lines of a comment without the slashes and the space after them.
func docLines(doc []ast.Comment) []string {
	var lines []string
	for _, c := range doc {
		text := c.Text[len("//"):]
		if len(text) > 0 && text[0] == ' ' {
			text = text[1:]
		}
		lines = append(lines, text)
	}
	return lines
}
