// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
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

// GoLoader is the [Loader] that uses the go command. It reads types from the compiler's export
// data, which is fast with a warm build cache, and from source if a package does not compile. It
// reads definitions from files.
type GoLoader struct{}

var _ Loader = GoLoader{}

// Load implements [Loader].
func (GoLoader) Load(ctx context.Context, dir string, paths []string) (map[string]*Package, error) {
	result := make(map[string]*Package, len(paths))
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		if !strings.Contains(path, " ") {
			return false
		}
		result[path] = loadDefinitions(ctx, dir, path)
		return true
	})
	if len(paths) == 0 {
		return result, ctx.Err()
	}
	return result, loadGo(ctx, dir, paths, result)
}

// loadGo adds Go packages to the result. In a module whose go.mod is not up to date, the go command
// lists nothing at all if it knows no module for one of the paths: then each half of them is loaded
// alone, so that those paths do not hide the other packages.
func loadGo(ctx context.Context, dir string, paths []string, result map[string]*Package) error {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx,
		Dir:     dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedExportFile,
	}, paths...)
	if ctx.Err() != nil {
		err = ctx.Err() // the go command was stopped, and its error would say something else
	}
	switch half := len(paths) / 2; {
	case err != nil:
		return fmt.Errorf("loading Go packages: %w", &goError{err})
	case len(loaded) > 0:
	case half > 0:
		return cmp.Or(loadGo(ctx, dir, paths[:half], result), loadGo(ctx, dir, paths[half:], result))
	default:
		result[paths[0]] = unlisted(ctx, dir, paths[0])
	}
	for _, pkg := range loaded {
		result[pkg.PkgPath] = newPackage(pkg)
	}
	return nil
}

// unlisted returns a package that the go command does not list, with what that says.
func unlisted(ctx context.Context, dir, path string) *Package {
	command := exec.CommandContext(ctx, "go", "list", "-e", "--", path)
	command.Dir = dir
	_, err := command.Output()
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return &Package{}
	}
	said := strings.TrimPrefix(strings.Join(strings.Fields(string(failed.Stderr)), " "), "go: ")
	problem, remedy, _ := strings.Cut(said, "; to update it: ")
	return &Package{Problem: problem, Remedy: remedy}
}

// A goError is a failure of the go command. Its text is one line: what the command wrote, if it
// wrote anything.
type goError struct{ err error }

func (e *goError) Error() string {
	text := strings.TrimPrefix(e.err.Error(), "err: ")
	if problem, written, ok := strings.Cut(text, ": stderr: "); ok {
		text = problem
		if written = strings.TrimSpace(written); written != "" {
			text = strings.Join(strings.Fields(written), " ")
		}
	}
	return text
}

func (e *goError) Unwrap() error { return e.err }

func newPackage(pkg *packages.Package) *Package {
	p := &Package{Types: pkg.Types, Fset: pkg.Fset}
	if len(pkg.Errors) > 0 {
		p.Problem = pkg.Errors[0].Msg
	}
	if len(pkg.GoFiles) == 0 || pkg.Types == nil || pkg.Types.Name() == "" {
		p.Types = nil
		if p.Problem == "" {
			p.Problem = "it has no Go files"
		}
		return p
	}
	if lookupBuiltin(pkg.PkgPath) == nil {
		p.Facts = ReadFacts(parseAll(pkg.GoFiles))
	}
	return p
}

// parseAll reads source files for their comments. What cannot be read has no facts.
func parseAll(names []string) []*ast.File {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if f, _ := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution); f != nil {
			files = append(files, f)
		}
	}
	return files
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
