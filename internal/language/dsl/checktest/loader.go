// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package checktest

import (
	"context"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// Loader is a [check.Loader] with a few small packages: reduced forms of k8s.io/api/core/v1,
// k8s.io/api/batch/v1 and k8s.io/api/apps/v1, and controller-kit-demo/api/v1. All definitions that
// a document names are those of testdata/fake/traffic.yaml. It starts no process and reads no file.
type Loader struct{}

var _ check.Loader = Loader{}

//go:embed testdata/fake/packages.txtar
var fakeSources []byte

//go:embed testdata/fake/traffic.yaml
var fakeDefinitionSource []byte

// fakeDefinitions are read once.
var fakeDefinitions = sync.OnceValue(func() []*definitions.Definition {
	d := &definitions.Definition{}
	if err := yaml.Unmarshal(fakeDefinitionSource, d); err != nil {
		panic(err) // it is a file of this package
	}
	return []*definitions.Definition{d}
})

// fakePackages are type-checked once.
var fakePackages = sync.OnceValues(checkFakes)

// Load implements [check.Loader]. Packages that it does not know are not found.
func (Loader) Load(ctx context.Context, _ string, paths []string) (map[string]*check.Package, error) {
	known, err := fakePackages()
	if err != nil {
		return nil, err
	}
	result := make(map[string]*check.Package, len(paths))
	for _, path := range paths {
		if p, ok := known[path]; ok {
			result[path] = p
		} else if label, _, ok := strings.Cut(path, " "); ok {
			result[path] = check.NewDefinitions(path, label, fakeDefinitions())
		}
	}
	return result, ctx.Err()
}

// mapImporter imports packages that were type-checked before.
type mapImporter map[string]*check.Package

func (m mapImporter) Import(path string) (*types.Package, error) {
	if p, ok := m[path]; ok {
		return p.Types, nil
	}
	return nil, fmt.Errorf("unknown package %s", path)
}

func checkFakes() (map[string]*check.Package, error) {
	known := mapImporter{}
	for _, file := range txtar.Parse(fakeSources).Files {
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file.Name, file.Data, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		config := types.Config{Importer: known}
		pkg, err := config.Check(file.Name, fset, []*ast.File{tree}, nil)
		if err != nil {
			return nil, err
		}
		known[file.Name] = &check.Package{Types: pkg, Facts: check.ReadFacts([]*ast.File{tree})}
	}
	return known, nil
}
