// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
)

// FuzzGenerate checks and generates arbitrary bytes: what the checker finds no error in can be
// generated, and is Go.
func FuzzGenerate(f *testing.F) {
	f.Add(checktest.CronJob)
	f.Add([]byte(largeDocument()))
	for _, name := range []string{"fmt", "ctrl", "context", "state2", "π", "日本", "PVCs", "reader"} {
		f.Add(fmt.Appendf(nil, "decl %[2]s for Deployment {\n    state {\n        %[1]s []Pod { owned=any }\n    }\n    action {\n        X%[1]s(%[1]s)\n    }\n}\n", name, "Manager"))
	}
	for _, name := range []string{"golden/shop.ctrlkit", "golden/defined/routing.ctrlkit", "golden/defined/mounts.ctrlkit"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("bind traffic.example.com/v1 ./traffic.yaml\n\ndecl A for traffic.example.com/v1/Route {\n    state {\n        a []Pod { name=${target.spec.backends[].service} }\n" +
		"        b traffic.example.com/v1/Route { fields/.spec.tier=gold }\n        c []Pod { labels/a=${b.spec.zone} }\n    }\n    action {\n        X(a, c)\n    }\n}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		pkg, list, err := check.Check(t.Context(), check.Input{
			Dir: ".", Name: "fuzzed", Path: "controller-kit-demo/fuzzed", Sources: []check.Source{{File: "a.ctrlkit", Text: text}},
		}, checktest.Loader{})
		if err != nil {
			t.Fatal(err)
		}
		if list.HasErrors() {
			return
		}
		files, err := Generate(pkg)
		if err != nil {
			t.Fatalf("the checker found no error, the generator did: %v", err)
		}
		for _, file := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), file.Name, file.Content, parser.AllErrors); err != nil {
				t.Fatal(err)
			}
		}
	})
}
