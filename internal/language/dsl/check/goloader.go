// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !js

package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
)

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
	if problem, remedy := missingSum(pkg); problem != "" {
		return &Package{Problem: problem, Hint: "run: " + remedy}
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

// missingSum returns what the go command says of an import of the package that it can't load
// because go.sum lacks the module, and the command that it proposes. Without that import no kind
// would look like one.
func missingSum(pkg *packages.Package) (problem, remedy string) {
	for _, path := range slices.Sorted(maps.Keys(pkg.Imports)) {
		for _, e := range pkg.Imports[path].Errors {
			problem, remedy, ok := strings.Cut(e.Msg, "; to add:")
			if ok && strings.HasPrefix(problem, "missing go.sum entry") {
				return problem, strings.TrimSpace(remedy)
			}
		}
	}
	return "", ""
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

// loadDefinitions reads the kinds of a group and version from definitions. A module is looked for
// from dir.
func loadDefinitions(ctx context.Context, dir, key string) *Package {
	words := strings.SplitN(key, " ", 3)
	label, source := words[0], words[1]
	if len(words) > 2 {
		dir = words[2]
	}
	path, err := definitionsPath(ctx, dir, source)
	var list []*definitions.Definition
	if err == nil {
		list, err = definitions.Read(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("there is no such file or directory")
	}
	if err == nil && len(list) == 0 {
		err = noDefinitions(path)
	}
	if err != nil {
		p := noPackage()
		p.Problem = strings.TrimPrefix(err.Error(), path+": ")
		return p
	}
	return NewDefinitions(key, label, list)
}

// noDefinitions is the error for a file or directory without definitions.
func noDefinitions(path string) error {
	if ext := filepath.Ext(path); !slices.Contains(definitions.Extensions, ext) && ext != "" {
		return fmt.Errorf("it has no CustomResourceDefinition: the extensions of such files are %s", listOf(definitions.Extensions))
	}
	return errors.New("it has no CustomResourceDefinition")
}

// definitionsPath returns the file or directory of a source, and downloads a module if need be.
func definitionsPath(ctx context.Context, dir, source string) (string, error) {
	of, below, ok := strings.Cut(source, ":")
	if !ok {
		return filepath.Join(dir, filepath.FromSlash(source)), nil
	}
	root := ""
	if !strings.Contains(of, "@") {
		found, err := goModule(ctx, dir, "list", "-m", "-json", of)
		if err != nil {
			return "", err
		}
		root = found // empty if it has not been downloaded
	}
	if root == "" {
		var err error
		if root, err = goModule(ctx, dir, "mod", "download", "-json", of); err != nil {
			return "", err
		}
	}
	return filepath.Join(root, filepath.FromSlash(below)), nil
}

// goModule runs the go command, which describes a module, and returns the directory of that.
func goModule(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	out, err := command.Output()
	var described struct{ Dir, Error string }
	malformed := json.Unmarshal(out, &described)
	if malformed == nil && described.Error != "" {
		return "", errors.New(firstLine(described.Error))
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", errors.New(cmp.Or(firstLine(string(failed.Stderr)), err.Error()))
	}
	if err == nil && malformed != nil { // several modules, as for the word all
		err = errors.New("this names no module")
	}
	return described.Dir, err
}
