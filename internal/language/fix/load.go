// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// Options are what [Load] needs.
type Options struct {
	Dir      string   // of the module
	Patterns []string // packages, as for the go command
	From     []string // import paths of copies of the original library
}

// A source is a file of the operator.
type source struct {
	name string // absolute
	text []byte
	tree *ast.File
}

// A unit is a package, with or without its tests, that was type-checked as far as its own module
// goes.
type unit struct {
	types   *types.Package
	info    *types.Info
	sources []*source
}

// A loader type-checks packages of the module. The others are unknown to it: their names are
// resolved to a package, but have no types.
type loader struct {
	fset     *token.FileSet
	listed   map[string]*packages.Package // by path, without tests
	excluded []string                     // files, by their build constraints
	units    map[string]*unit             // by ID
	sources  map[string]*source           // by name
}

var errUnknown = errors.New("a package of another module")

// Import implements [types.Importer].
func (l *loader) Import(path string) (*types.Package, error) {
	p := l.listed[path]
	if p == nil {
		return nil, errUnknown
	}
	u, err := l.unit(p)
	if err != nil {
		return nil, err
	}
	if u.types == nil {
		return nil, errors.New("a cycle of imports")
	}
	return u.types, nil
}

// unit type-checks a package once. Mistakes in it do not matter.
func (l *loader) unit(p *packages.Package) (*unit, error) {
	if u := l.units[p.ID]; u != nil {
		return u, nil
	}
	u := &unit{info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
	l.units[p.ID] = u // a cycle of imports ends here
	var trees []*ast.File
	for _, name := range p.GoFiles {
		s, err := l.source(name)
		if err != nil {
			return nil, err
		}
		u.sources = append(u.sources, s)
		trees = append(trees, s.tree)
	}
	config := types.Config{Importer: l, Error: func(error) {}, FakeImportC: true}
	u.types, _ = config.Check(p.PkgPath, l.fset, trees, u.info)
	return u, nil
}

func (l *loader) source(name string) (*source, error) {
	if s := l.sources[name]; s != nil {
		return s, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading Go: %w", err)
	}
	tree, err := parser.ParseFile(l.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing Go: %w", err)
	}
	s := &source{name, text, tree}
	l.sources[name] = s
	return s, nil
}

// list returns a loader that knows the packages of the module, and those of them that the patterns
// name, tests included. The packages with more files come first: a package with its tests before
// itself.
func list(ctx context.Context, o Options) (*loader, []*packages.Package, error) {
	config := &packages.Config{
		Context: ctx, Dir: o.Dir, Tests: true,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule | packages.NeedForTest,
	}
	roots, err := packages.Load(config, o.Patterns...)
	if err != nil {
		return nil, nil, fmt.Errorf("listing packages: %w", err)
	}
	l := &loader{fset: token.NewFileSet(), listed: map[string]*packages.Package{}, units: map[string]*unit{}, sources: map[string]*source{}}
	packages.Visit(roots, nil, func(p *packages.Package) {
		if isOurs(p) && p.ID == p.PkgPath {
			l.listed[p.PkgPath] = p
		}
	})
	for _, p := range roots {
		l.excluded = append(l.excluded, p.IgnoredFiles...)
	}
	if len(l.listed) == 0 {
		return nil, nil, listError(roots)
	}
	roots = slices.DeleteFunc(roots, func(p *packages.Package) bool { return !isOurs(p) })
	slices.SortStableFunc(roots, func(a, b *packages.Package) int { return len(b.GoFiles) - len(a.GoFiles) })
	return l, roots, nil
}

// isOurs reports whether the files of a package are in the module that is fixed, and not in the
// cache of the go command, as the main package of a test is.
func isOurs(p *packages.Package) bool {
	return p.Module != nil && p.Module.Main && len(p.GoFiles) > 0 && filepath.Ext(p.PkgPath) != ".test"
}

// listError says why no package was found.
func listError(roots []*packages.Package) error {
	for _, p := range roots {
		for _, e := range p.Errors {
			return fmt.Errorf("listing packages: %w", e)
		}
	}
	return errors.New("no packages of this module match")
}
