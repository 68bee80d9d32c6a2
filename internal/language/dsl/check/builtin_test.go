// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"flag"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"

	// The table is made from these modules, which therefore have to be in go.mod.
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

var update = flag.Bool("update", false, "write golden files anew, and fail")

// TestBuiltinTable compares the table with the Go packages of the Kubernetes version in go.mod.
func TestBuiltinTable(t *testing.T) {
	rings.Test(t, "runs the go command")
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedExportFile,
	}, "k8s.io/api/...", "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(loaded, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	var want strings.Builder
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			t.Fatal(pkg.Errors)
		}
		want.WriteString(builtinLine(pkg))
	}
	if want.String() == builtinText {
		return
	}
	if *update {
		if err := os.WriteFile("builtin.txt", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("builtin.txt differs from the Kubernetes packages in go.mod; run: go generate ./internal/language/dsl/check")
}

// builtinLine returns the line of a package, empty if it has no kinds.
func builtinLine(pkg *packages.Package) string {
	facts := ReadFacts(parseAll(pkg.GoFiles))
	line := pkg.PkgPath + " " + gvLabel(facts.Group, facts.Version)
	kinds := ""
	for _, name := range pkg.Types.Scope().Names() {
		obj, ok := pkg.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || objectProblem(obj) != "" {
			continue
		}
		kinds += " " + name
		if facts.ClusterScoped[name] {
			kinds += "*"
		}
		if listType(obj) == "" {
			kinds += "!"
		}
	}
	if kinds == "" {
		return ""
	}
	return line + kinds + "\n"
}
