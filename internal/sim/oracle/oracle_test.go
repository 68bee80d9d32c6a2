// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestDifferencesAreOneLine(t *testing.T) {
	for want, d := range map[string]Difference{
		"- secrets default/x is missing":                                    {Thing: "secrets default/x", Want: "there"},
		"+ secrets default/x should not be there":                           {Thing: "secrets default/x", Got: "there"},
		`~ configmaps default/x data.a: got "2", want "1"`:                  {Thing: "configmaps default/x", Path: ".data.a", Want: "1", Got: "2"},
		`~ configmaps default/x data.a: got nothing, want "1"`:              {Thing: "configmaps default/x", Path: ".data.a", Want: "1"},
		`~ secrets default/x data.a: got <secret 3f2a>, want <secret 91bc>`: {Thing: "secrets default/x", Path: ".data.a", Want: "<secret 91bc>", Got: "<secret 3f2a>"},
	} {
		if got := d.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got, want := (Violation{Oracle: NoLeak, Text: "b is left"}).String(), "no-leak: b is left"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Names are written on command lines and in tests: they are words with dashes, each is one oracle,
// and the source says beside each what holds. Each has one row in the table.
func TestNames(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "oracle.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []Name
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		value := spec.Values[0].(*ast.BasicLit).Value
		name := Name(strings.Trim(value, `"`))
		if !regexp.MustCompile(`^"[a-z]+(-[a-z]+)*"$`).MatchString(value) || slices.Contains(names, name) {
			t.Errorf("%s is not a name of its own: %s", spec.Names[0].Name, value)
		}
		if names = append(names, name); spec.Comment == nil {
			t.Errorf("%s does not say what holds", spec.Names[0].Name)
		}
		return true
	})
	slices.Sort(names)
	if rows := slices.Sorted(slices.Values(Names())); len(names) < 18 || !slices.Equal(names, rows) {
		t.Errorf("the source declares %q, the table has %q", names, rows)
	}
}
