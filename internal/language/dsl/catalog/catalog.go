// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog loads kinds where there is no Go module: those of Kubernetes from one text, and
// others from definitions.
//
//	text, err := catalog.Read(ctx) // once, with the go command
//	...
//	kinds := catalog.New(text)
//	analysis, err := check.Analyze(ctx, in, kinds.With(definitions))
//
// The text has the Go packages, each with its types, the names of their methods, and the constants
// that are text: as much as the checker asks for.
package catalog

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// A Catalog has Go packages. It type-checks each when it is first asked for, and must not be used
// concurrently.
type Catalog struct {
	sources map[string][]byte
	known   map[string]*types.Package
}

// New returns the catalog that [Write] has written.
func New(text []byte) *Catalog {
	c := &Catalog{sources: map[string][]byte{}, known: map[string]*types.Package{}}
	for _, file := range txtar.Parse(text).Files {
		c.sources[file.Name] = file.Data
	}
	return c
}

// Import implements [types.Importer].
func (c *Catalog) Import(path string) (*types.Package, error) {
	if pkg := c.known[path]; pkg != nil {
		return pkg, nil
	}
	source, ok := c.sources[path]
	if !ok {
		return nil, fmt.Errorf("the catalog has no package %s", path)
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: c, IgnoreFuncBodies: true}
	pkg, err := config.Check(path, fset, []*ast.File{tree}, nil)
	if err != nil {
		return nil, err
	}
	c.known[path] = pkg
	return pkg, nil
}

// With returns a loader of the packages of the catalog, and of the definitions of a YAML text, for
// which any relative path stands.
func (c *Catalog) With(text []byte) check.Loader {
	l := &loader{catalog: c}
	l.definitions, l.malformed = definitions.Parse(text)
	return l
}

type loader struct {
	catalog     *Catalog
	definitions []*definitions.Definition
	malformed   error
}

var _ check.Loader = (*loader)(nil)

// Load implements [check.Loader].
func (l *loader) Load(ctx context.Context, _ string, paths []string) (map[string]*check.Package, error) {
	result := map[string]*check.Package{}
	for _, path := range paths {
		if label, _, ok := strings.Cut(path, " "); ok {
			result[path] = l.defined(path, label)
			continue
		}
		p, err := l.catalog.load(path)
		if err != nil {
			return nil, err
		}
		result[path] = p
	}
	return result, ctx.Err()
}

// load returns a package of the catalog. One that the catalog lacks is a mistake of the document; one
// that is malformed is a mistake of the catalog.
func (c *Catalog) load(path string) (*check.Package, error) {
	if _, ok := c.sources[path]; !ok {
		return &check.Package{
			Problem: "there are no Go packages here but those of Kubernetes",
			Hint:    "write ./definitions.yaml here, and paste the CustomResourceDefinition",
		}, nil
	}
	pkg, err := c.Import(path)
	if err != nil {
		return nil, fmt.Errorf("loading the catalog: %w", err)
	}
	return &check.Package{Types: pkg}, nil
}

// defined returns the kinds of a group and version from the definitions.
func (l *loader) defined(path, label string) *check.Package {
	p := check.NewDefinitions(path, label, l.definitions)
	switch {
	case l.malformed != nil:
		*p = check.Package{Definitions: true, Problem: l.malformed.Error(), Hint: "paste the YAML of a CustomResourceDefinition"}
	case len(l.definitions) == 0:
		*p = check.Package{Definitions: true, Problem: "there is no definition", Hint: "paste the CustomResourceDefinition, or the file that has it"}
	case p.Problem != "":
		p.Hint = "bind a version that they serve"
	}
	return p
}
