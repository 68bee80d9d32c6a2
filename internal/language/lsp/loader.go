// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// A packageCache is a [check.Loader] that never waits: it returns the packages that are there, and
// loads the others in the background. A package that may have changed is used until it is loaded
// again.
type packageCache struct {
	loader check.Loader
	// loaded is called without a lock after packages of a module have been loaded.
	loaded func(dir string)

	mu      sync.Mutex
	modules map[string]*modulePackages // guarded by mu, by directory
	running sync.WaitGroup
}

// modulePackages are those that are loaded from one directory.
type modulePackages struct {
	known   map[string]*check.Package
	wanted  map[string]bool // to be loaded, now or again
	loading bool
	err     error // of the last load
}

var _ check.Loader = (*packageCache)(nil)

func newPackageCache(loader check.Loader) *packageCache {
	return &packageCache{loader: loader, modules: map[string]*modulePackages{}}
}

// Load implements [check.Loader].
func (c *packageCache) Load(ctx context.Context, dir string, paths []string) (map[string]*check.Package, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.modules[dir]
	if m == nil {
		m = &modulePackages{known: map[string]*check.Package{}, wanted: map[string]bool{}}
		c.modules[dir] = m
	}
	result := map[string]*check.Package{}
	for _, path := range paths {
		if p := m.known[path]; p != nil {
			result[path] = p
		} else {
			m.wanted[path] = true
		}
	}
	c.start(ctx, dir, m)
	return result, nil
}

// forget has all packages of a directory loaded again, those of Kubernetes excepted, which do not
// change.
func (c *packageCache) forget(ctx context.Context, dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.modules[dir]
	if m == nil {
		return
	}
	builtin := slices.Collect(maps.Values(check.BuiltinPackages()))
	for path, p := range m.known {
		if p.Types == nil || !slices.Contains(builtin, path) {
			m.wanted[path] = true
		}
	}
	c.start(ctx, dir, m)
}

// start begins to load what is wanted, unless a load runs: then it is loaded after that. The caller
// holds the lock.
func (c *packageCache) start(ctx context.Context, dir string, m *modulePackages) {
	if m.loading || len(m.wanted) == 0 || ctx.Err() != nil {
		return
	}
	m.loading = true
	paths := slices.Sorted(maps.Keys(m.wanted))
	clear(m.wanted)
	c.running.Go(func() {
		loaded, err := c.loader.Load(ctx, dir, paths)
		c.mu.Lock()
		m.loading, m.err = false, err
		for _, path := range paths {
			switch p := loaded[path]; {
			case p != nil:
				m.known[path] = p
			case err != nil && m.known[path] == nil:
				m.known[path] = &check.Package{Problem: err.Error()}
			case m.known[path] == nil:
				m.known[path] = &check.Package{}
			}
		}
		c.start(ctx, dir, m)
		c.mu.Unlock()
		if ctx.Err() == nil {
			c.loaded(dir)
		}
	})
}
