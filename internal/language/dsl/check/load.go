// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"go/token"
	"go/types"
	"sync"
)

// A Loader loads the Go packages that documents are bound to.
type Loader interface {
	// Load loads the packages with the given paths, as seen from the Go module of the directory,
	// and returns them by path. A path is that of a Go import, or that of definitions: a group and
	// version, the source as in a bind, and, if that is a relative path, the directory where it
	// begins, with spaces between them.
	//
	//   - A package that cannot be loaded is not an error: its Problem says why.
	//   - An error means that nothing can be loaded, for example because there is no go command.
	//   - Load may block on other processes, until the context is done.
	//   - Load may be called concurrently. The packages must not be changed.
	Load(ctx context.Context, dir string, paths []string) (map[string]*Package, error)
}

// A Package is what the checker needs to know of a Go package.
type Package struct {
	// Types is nil when the package could not be loaded at all.
	Types *types.Package
	// Problem is why Types is nil, or else what is wrong with the package. It is empty if nothing
	// is.
	Problem string
	// Remedy is the command that the go command says to run before it looks for packages like this
	// one. It is mostly empty.
	Remedy string
	// Hint is the remedy of the problem. If it is empty, the checker has one.
	Hint string
	// Facts are read from the source.
	Facts Facts
	// Fset has the positions of the types, nil if they have none.
	Fset *token.FileSet
	// Definitions is true if the kinds are those of CustomResourceDefinitions: Types then has a type
	// for each kind and no other, made of the schemas.
	Definitions bool
}

// problem returns why a type of the package is not a kind, or "" if it is one.
func (p *Package) problem(obj *types.TypeName) string {
	if p.Definitions {
		return ""
	}
	return objectProblem(obj)
}

// A Cache is a [Loader] that loads each package once, with another loader. It is for programs that
// check many documents of one module within a short time: it never loads a package again.
type Cache struct {
	loader Loader

	mu    sync.Mutex
	known map[cacheKey]*Package // guarded by mu; nil for what the loader does not know
}

type cacheKey struct{ dir, path string }

var _ Loader = (*Cache)(nil)

// NewCache returns a cache of the packages that the loader loads.
func NewCache(loader Loader) *Cache {
	return &Cache{loader: loader, known: map[cacheKey]*Package{}}
}

// Load implements [Loader].
func (c *Cache) Load(ctx context.Context, dir string, paths []string) (map[string]*Package, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	result := make(map[string]*Package, len(paths))
	var missing []string
	for _, path := range paths {
		p, ok := c.known[cacheKey{dir, path}]
		switch {
		case !ok:
			missing = append(missing, path)
		case p != nil:
			result[path] = p
		}
	}
	if len(missing) == 0 {
		return result, ctx.Err()
	}
	loaded, err := c.loader.Load(ctx, dir, missing)
	if err != nil {
		return nil, err
	}
	for _, path := range missing {
		c.known[cacheKey{dir, path}] = loaded[path]
		if p := loaded[path]; p != nil {
			result[path] = p
		}
	}
	return result, nil
}
