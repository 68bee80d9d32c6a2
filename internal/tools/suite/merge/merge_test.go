// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// others is a module whose tests have what makes merging hard: the same names and flags in several
// packages, internal and external test packages, a program, an internal package, and a TestMain.
const others = `
-- go.work --
go 1.26.0

use (
	.
	ROOT
)
-- go.mod --
module github.com/ctrlkit/ctrlkit/others

go 1.26.0
-- a/a.go --
package a

import "flag"

var Shared = flag.Bool("shared", false, "of a file that is no test")

func secret() int { return 7 }
-- a/a_test.go --
package a

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Int("update", 1, "")

func TestMain(m *testing.M) {
	code := m.Run()
	println("main of a, with", *update)
	os.Exit(code)
}

func TestSecret(t *testing.T) {
	if secret() != 7 || t.Name() != "TestSecret" || !testing.Testing() {
		t.Error("wrong")
	}
	if _, err := os.Stat("a_test.go"); err != nil {
		t.Error(err)
	}
}

func Testimony(t *testing.T) { t.Error("no test") }

func FuzzSecret(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) { t.Log("fuzzed", n) })
}
-- a/more_test.go --
package a_test

import (
	"fmt"
	"testing"

	"github.com/ctrlkit/ctrlkit/others/a"
	"github.com/ctrlkit/ctrlkit/others/internal/d"
)

func TestExternal(t *testing.T) {
	if !*a.Shared || d.D != 3 {
		t.Error(*a.Shared, d.D)
	}
	t.Log("a line of its own")
}

func Example() {
	fmt.Println("right")
	// Output: right
}

func Example_wrong() {
	fmt.Println("right")
	// Output: wrong
}

func ExampleCompiledOnly() { panic("it has no output") }
-- internal/d/d.go --
package d

const D = 3
-- internal/b/internal/c/c_test.go --
package c

import (
	"flag"
	"testing"
)

var update = flag.Bool("update", false, "the same name, another type")

func TestC(t *testing.T) {
	if *update {
		t.Fatal("as asked")
	}
}
-- program/main.go --
// A program.
package main

import "github.com/ctrlkit/ctrlkit/others/a"

func main() { println(*a.Shared) }
-- program/main_test.go --
package main

import "testing"

func TestProgram(t *testing.T) { main() }
`

// writeOthers writes the module, and goes to its directory.
func writeOthers(t *testing.T) (root string) {
	t.Helper()
	repository, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	for _, f := range txtar.Parse([]byte(others)).Files {
		write(t, filepath.Join(root, f.Name), strings.ReplaceAll(string(f.Data), "ROOT", repository))
	}
	t.Chdir(root)
	return root
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const module = "github.com/ctrlkit/ctrlkit/others"

func build(t *testing.T, root string) (*Binary, error) {
	t.Helper()
	all, err := List(t.Context(), "./...")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Module: module, Root: root, Dir: filepath.Join(root, "bin"), Flags: []string{"-vet=off"}}
	return Build(t.Context(), o, all, func(*Package) bool { return true })
}

// The tests of each package run as with go test: with their names, flags, and TestMain, in their
// directory.
func TestMerged(t *testing.T) {
	rings.Test(t, "compiles programs")
	root := writeOthers(t)
	binary, err := build(t, root)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path   string
		args   []string
		passed bool
		want   []string
		not    []string
	}{
		"one":          {path: "/a", args: []string{"-update=5", "-shared"}, want: []string{"--- PASS: TestSecret", "--- PASS: TestExternal", "more_test.go:15: a line of its own", "--- PASS: FuzzSecret/seed#0", "--- PASS: Example ", "--- FAIL: Example_wrong", "main of a, with 5"}, not: []string{"Testimony", "TestC", "CompiledOnly"}},
		"a part":       {path: "/a", args: []string{"-test.run=Secret"}, passed: true, want: []string{"TestSecret"}, not: []string{"TestExternal"}},
		"internal":     {path: "/internal/b/internal/c", passed: true, want: []string{"--- PASS: TestC"}, not: []string{"TestSecret", "main of a"}},
		"another flag": {path: "/internal/b/internal/c", args: []string{"-update"}, want: []string{"as asked"}},
		"a program":    {path: "/program", args: []string{"-shared"}, passed: true, want: []string{"true", "--- PASS: TestProgram"}},
		"none":         {path: "/none", want: []string{"no tests of such a package"}},
	} {
		t.Run(name, func(t *testing.T) {
			command, err := binary.Command(t.Context(), module+tt.path, append([]string{"-test.v"}, tt.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			output, err := command.CombinedOutput()
			if passed := err == nil; passed != tt.passed {
				t.Errorf("passed: %t, %v", passed, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(string(output), not) {
					t.Errorf("unexpected: %q", not)
				}
			}
			if t.Failed() {
				t.Logf("%s", output)
			}
		})
	}
	write(t, filepath.Join(root, "a", "wrong_test.go"), "package a\n\nvar x int = \"\"\n")
	if _, err := build(t, root); err == nil || !strings.Contains(err.Error(), filepath.Join("a", "wrong_test.go")+":3:") {
		t.Errorf("the error does not name the place: %v", err)
	}
}

// A package whose test closes a cycle of imports is left out; its twin, which only tests what
// imports it from an external package, is not.
func TestMergeable(t *testing.T) {
	all := []*Package{
		{ImportPath: "a", TestGoFiles: []string{"a_test.go"}, TestImports: []string{"helper"}},
		{ImportPath: "helper", Imports: []string{"b"}},
		{ImportPath: "b", TestGoFiles: []string{"b_test.go"}, TestImports: []string{"a", "fmt"}},
		{ImportPath: "c", XTestGoFiles: []string{"c_test.go"}, XTestImports: []string{"c", "a"}},
		{ImportPath: "embeds", XTestGoFiles: []string{"c_test.go"}, XTestEmbedPatterns: []string{"testdata"}},
		{ImportPath: "unwanted", TestGoFiles: []string{"c_test.go"}},
	}
	var got []string
	for _, p := range mergeable(all, func(p *Package) bool { return p.ImportPath != "unwanted" }) {
		got = append(got, p.ImportPath)
	}
	if diff := cmp.Diff([]string{"b", "c"}, got); diff != "" {
		t.Error(diff)
	}
}
