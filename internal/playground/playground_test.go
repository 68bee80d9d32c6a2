// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/catalog"
	"github.com/ctrlkit/ctrlkit/internal/playground"
)

const definitions = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Route, plural: routes}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

const document = `bind example.com/v1 ./any.yaml
alias Route example.com/v1/Route
decl Routing for Route { // 😀é
state {
routes []Route {
owned
}
}
action {
Sync(routes)
}
}
`

// Each case is a change of the document or of the definitions, and the mistake and its place.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, definitions, message, place string }{
		{"", "", definitions, "", ""},
		{"Sync(routes)", "Sync(route)", definitions, `unknown state "route"`, "route"},
		{"// 😀é", "// 😀é\nstate {}\nx", definitions, `"x"`, "x"},
		{"", "", "", "there is no definition", "./any.yaml"},
		{"", "", "kind: [", "cannot load ./any.yaml", "./any.yaml"},
		{"./any.yaml", "example.com/api/v1", definitions, "there are no Go packages here", "example.com/api/v1"},
		{"example.com/v1 ./", "example.com/v2 ./", definitions, "only example.com/v1", "./any.yaml"},
	} {
		text := strings.Replace(document, c.old, c.new, 1)
		result, err := playground.Check(t.Context(), catalog.New(nil), text, c.definitions)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(result.Drawing, "Sync") {
			t.Errorf("%s -> %s: no drawing", c.old, c.new)
		}
		found := c.message == ""
		units := utf16.Encode([]rune(text))
		for _, m := range result.Mistakes {
			found = found && m.Severity == "note" ||
				strings.Contains(m.Message, c.message) && string(utf16.Decode(units[m.Start:m.End])) == c.place && m.Severity == "error"
			if found {
				break
			}
		}
		if !found {
			t.Errorf("%s -> %s: %+v, want %q at %q", c.old, c.new, result.Mistakes, c.message, c.place)
		}
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	if formatted := playground.Format(document); !strings.Contains(formatted, "\n            owned\n") {
		t.Errorf("got\n%s", formatted)
	}
	const broken = "decl {"
	if formatted := playground.Format(broken); formatted != broken {
		t.Errorf("a document that can't be read becomes %q", formatted)
	}
}
