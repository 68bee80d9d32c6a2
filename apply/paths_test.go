// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/ctrlkit/ctrlkit/apply"
)

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	u := map[string]any{}
	must(t, json.Unmarshal([]byte(text), &u))
	content, err := apply.ContentOf(unstructuredFrom(u))
	must(t, err)
	return content
}

const nested = `{
	"spec":{"keys":["a,b","c=d","e]f"],"numbers":[1,2],"replicas":3,"template":{"spec":{"containers":[
		{"name":"a,b","image":"x","ports":[{"containerPort":80,"protocol":"UDP"},{"containerPort":80}]},
		{"name":"web","image":"y","args":["1","2"]}]}}},
	"data":{"a":"1","a.b":"2","a.b.c":"3","[x]":"4"}}`

func TestRemovePath(t *testing.T) {
	for _, tt := range []struct{ path, want string }{ // want is the part of nested that is gone
		{`.spec.replicas`, `"replicas":3,`},
		{`.spec.template.spec.containers[name="web"].image`, `"image":"y",`},
		{`.spec.template.spec.containers[name="a,b"].image`, `"image":"x",`},
		{`.spec.template.spec.containers[name="web"].args`, `,"args":["1","2"]`},
		{`.spec.template.spec.containers[name="a,b"].ports[containerPort=80,protocol="UDP"].protocol`, `,"protocol":"UDP"`},
		{`.spec.template.spec.containers[name="a,b"].ports[containerPort=80,protocol="TCP"]`, `,{"containerPort":80}`},
		{`.spec.keys[="a,b"]`, `"a,b",`},
		{`.spec.keys[="c=d"]`, `"c=d",`},
		{`.spec.keys[="e]f"]`, `,"e]f"`},
		{`.spec.numbers[=2]`, `,2`},
		{`.data.a`, `"a":"1",`},
		{`.data.a.b`, `"a.b":"2",`},
		{`.data.a.b.c`, `"a.b.c":"3",`},
		{`.data.[x]`, `,"[x]":"4"`},
	} {
		for range 5 { // maps have no order
			content := decode(t, nested)
			if !apply.RemovePath(content, tt.path) {
				t.Errorf("%s is not found", tt.path)
				continue
			}
			compact := strings.NewReplacer("\n", "", "\t", "").Replace(nested)
			want := decode(t, strings.Replace(compact, tt.want, "", 1))
			if diff := cmp.Diff(want, content); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.path, diff)
			}
		}
	}
	for _, path := range []string{"", ".", "..", ".spec.", ".spec.replicas.x", ".spec[0]", ".spec.keys[0]", ".spec.keys[", ".spec.keys[]", `.spec.keys[="`, ".metadata", "spec"} {
		content := decode(t, nested)
		if apply.RemovePath(content, path) {
			t.Errorf("%q is found", path)
		}
		if diff := cmp.Diff(decode(t, nested), content); diff != "" {
			t.Errorf("%q changed (-want +got)\n%s", path, diff)
		}
	}
}

// Paths that API servers send are found, whatever the names and values in them; others change
// nothing and don't panic.
func FuzzRemovePath(f *testing.F) {
	f.Add(".spec.replicas", "name", "web")
	f.Add(`.spec.template.spec.containers[name="a,b"].ports[containerPort=80,protocol="TCP"]`, "a.b", `x"],[="\`)
	f.Add(`.spec.keys[="`, "", "\x00")
	f.Add(`[`, "[", "é\u2028")
	f.Add(".spec", "0", "\x7f") // quoted as Go does, which JSON does not understand
	f.Fuzz(func(t *testing.T, path, name, text string) {
		// What API servers store is valid: a name, and a text that JSON has as it is.
		if !utf8.ValidString(name) || !utf8.ValidString(text) || !json.Valid([]byte(`"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)) || name == "" || strings.ContainsAny(name, "[]") {
			t.Skip("no API server stores such a name or text")
		}
		apply.RemovePath(decode(t, nested), path)
		element, rest, ok := apply.CutElement(path)
		if ok && len(element)+len(rest)+2 != len(path) {
			t.Errorf("%q is cut into %q and %q", path, element, rest)
		}
		content := map[string]any{"spec": map[string]any{name: []any{
			map[string]any{"name": text, "value": "1"}, map[string]any{"name": "x" + text, "value": "2"},
		}}}
		key := value.FieldList{{Name: "name", Value: value.NewValueInterface("x" + text)}}
		known := fieldpath.MakePathOrDie("spec", name, &key, "value").String()
		want := runtime.DeepCopyJSON(content)
		delete(want["spec"].(map[string]any)[name].([]any)[1].(map[string]any), "value")
		if !apply.RemovePath(content, known) {
			t.Fatalf("%s is not found", known)
		}
		if diff := cmp.Diff(want, content); diff != "" {
			t.Errorf("%s (-want +got)\n%s", known, diff)
		}
	})
}
