// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// everything are the packages of the workspace.
var everything = []string{"./...", "./examples/...", "./bench/...", "./internal/pictures/..."}

// raced are the packages whose subject is what goroutines do at the same time. Their tests run with
// the race detector in the first ring.
var raced = []string{
	".", "./condition", "./handlers", "./internal/engine/cause", "./internal/engine/track", "./journal", "./internal/engine/metrics",
	"./internal/sim/apiserver", "./state",
}

// racedLater are those whose tests are simulations, in which one goroutine runs at a time. The race
// detector makes them five times slower, and runs in the second ring.
var racedLater = []string{"./apply", "./external", "./reference", "./step"}

// alone are the packages whose tests have a binary of their own. The command is started hundreds of
// times, and says what a start costs; the SQL server compiles WebAssembly for 0.7 seconds before
// main, also in the soak.
var alone = []string{"./internal/command", "./examples/05_user", "./examples/internal/soak"}

// longest are the packages whose tests take longest. They begin first, so that in the end nothing
// waits for one of them alone.
var longest = []string{
	"./internal/command/live", "./internal/command", "./external", "./controlplane", "./sim", "./sim/internal/mutants", "./internal/sim/plan",
	"./internal/sim/program", "./examples/05_user", "./examples/06_stream", "./internal/scaffold",
}

// tested returns the packages of the workspace that have tests, in which the longest begin.
func tested(ctx context.Context) ([]tests, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, everything...)...)
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	var all []tests
	for _, path := range strings.Fields(string(output)) {
		t, err := testsIn(localName(path))
		if err != nil {
			return nil, err
		}
		if t.first || t.later {
			all = append(all, t)
		}
	}
	rank := func(t tests) int {
		if i := slices.Index(longest, t.dir); i >= 0 {
			return i
		}
		return len(longest)
	}
	slices.SortStableFunc(all, func(a, b tests) int { return rank(a) - rank(b) })
	return all, nil
}

// localName is a package of the workspace as the go command takes it in the root.
func localName(path string) string { return "." + strings.TrimPrefix(path, module) }

// tests says what the tests of a package are, because to link those of one takes seconds.
type tests struct {
	dir   string
	first bool // some are in the first ring
	later bool // some are not
}

// testsIn reads the tests of a package. A test that leaves itself to a later ring by way of a
// helper counts as one of the first: it is started, and skips itself.
func testsIn(dir string) (tests, error) {
	found := tests{dir: dir}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return found, err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return found, fmt.Errorf("reading the tests of %s: %w", dir, err)
		}
		found.later = found.later || slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
			return i.Path.Value == `"`+module+`/internal/tools/rings"`
		})
		found.first = found.first || slices.ContainsFunc(file.Decls, inFirstRing)
	}
	return found, nil
}

// inFirstRing reports whether a declaration is a test that does not say that it is in another ring.
func inFirstRing(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv != nil || f.Body == nil || f.Name.Name == "TestMain" {
		return false
	}
	isTest := func(kind string) bool { return strings.HasPrefix(f.Name.Name, kind) }
	return slices.ContainsFunc([]string{"Test", "Fuzz", "Example"}, isTest) && !slices.ContainsFunc(f.Body.List, leaves)
}

// leaves reports whether a statement is the call of rings.Test or rings.Explore.
func leaves(s ast.Stmt) bool {
	statement, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := statement.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := f.X.(*ast.Ident)
	return ok && of.Name == "rings" && (f.Sel.Name == "Test" || f.Sel.Name == "Explore")
}
