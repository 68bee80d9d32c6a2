// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
)

func entryOf(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestCovers(t *testing.T) {
	many := `{a: [` + items(70) + `]}`
	for _, tt := range []struct{ name, intent, fields, want string }{
		{"a field", "{a: 1}", `{"f:a":{}}`, ""},
		{"a field less", "{a: 1, b: 1}", `{"f:a":{}}`, "b"},
		{"a field more", "{a: 1}", `{"f:a":{},"f:b":{"f:c":{}}}`, ""},
		{"null", "{a: null}", `{"f:a":{}}`, ""},
		{"an atomic map", "{a: {b: 1}}", `{"f:a":{}}`, ""},
		{"an atomic list", "{a: [1]}", `{"f:a":{}}`, ""},
		{"an empty map", "{a: {}}", `{"f:a":{}}`, ""},
		{"an empty map that was taken", "{a: {}}", `{}`, "a"},
		{"an empty list, recorded", "{a: []}", `{"f:a":{}}`, ""},
		{"an empty list, not recorded", "{a: []}", `{}`, ""},
		{"a map of an empty list, not recorded", "{a: {b: []}}", `{}`, ""},
		{"everything was taken", "{a: 1}", `{}`, "a"},
		{"an item", "{a: [{name: x, b: 1}]}", `{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:b":{},"f:name":{}}}}`, ""},
		{"an item less", "{a: [{name: x}, {name: z}]}", `{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:name":{}}}}`, `a[name="z"]`},
		{"a field of an item less", "{a: [{name: x, b: 1}]}", `{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:name":{}}}}`, `a[name="x"].b`},
		{"an atomic item", "{a: [{uid: x, b: 1}]}", `{"f:a":{"k:{\"uid\":\"x\"}":{}}}`, ""},
		{"a key with a default", "{a: [{port: 1}]}", `{"f:a":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}`, ""},
		{"two with one default", "{a: [{port: 1}, {port: 1, protocol: UDP}]}",
			`{"f:a":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":1,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}`, ""},
		{"the default less", "{a: [{port: 1}, {port: 1, protocol: UDP}]}",
			`{"f:a":{"k:{\"port\":1,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}`, "a[port=1]"},
		{"a set", "{a: [x, 2, true]}", `{"f:a":{"v:true":{},"v:2":{},"v:\"x\"":{}}}`, ""},
		{"an item of a set less", "{a: [x, z]}", `{"f:a":{"v:\"x\"":{}}}`, `a[="z"]`},
		{"a set with escapes", `{a: ["\"<é\n"]}`, `{"f:a":{"v:\"\\\"\\u003cé\\n\"":{}}}`, ""},
		{"names with escapes", `{"a\"b\n": {"\\": 1}}`, `{"f:a\"b\n":{"f:\\":{}}}`, ""},
		{"a list where the entry has a map", "{a: [1]}", `{"f:a":{"f:b":{}}}`, `a[=1]`},
		{"a map where the entry has a list", "{a: {b: 1}}", `{"f:a":{"v:1":{}}}`, "a.b"},
		{"what is never recorded", "{apiVersion: v1, kind: X, metadata: {name: a, namespace: b, uid: c, resourceVersion: d, annotations: {apply.ctrlkit.dev/hash: x}}}", `{}`, ""},
		{"labels", "{metadata: {labels: {a: b}}}", `{"f:metadata":{"f:labels":{"f:a":{}}}}`, ""},
		{"a name that is no name", "{spec: {name: a, kind: x}}", `{"f:spec":{"f:name":{}}}`, "spec.kind"},
		{"more items than fit in a word", many, `{"f:a":{` + strings.TrimSuffix(members(70), ",") + `}}`, ""},
		{"one of them less", many, `{"f:a":{` + strings.TrimSuffix(members(69), ",") + `}}`, `a[="i69"]`},
		{"another API version", "{apiVersion: v2}", `{}`, "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			managed := []metav1.ManagedFieldsEntry{entryOf("x", "Update", `{"f:z":{}}`), entryOf(ours, "Apply", tt.fields)}
			intent := parse(t, tt.intent)
			gap, found := witness.Why(managed, ours, intent)
			if want := strings.TrimPrefix(tt.want, "-"); gap.Path != want || found != (tt.want != "") {
				t.Errorf("Why returns %q, %t, want %q", gap.Path, found, tt.want)
			}
			if got := witness.Covers(managed, ours, intent); got != (tt.want == "") {
				t.Errorf("Covers returns %t", got)
			}
		})
	}
}

func items(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("i" + string(rune('0'+i/10)) + string(rune('0'+i%10)) + ", ")
	}
	return b.String()
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"v:\"i` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `\"":{},`)
	}
	return b.String()
}

func TestEntries(t *testing.T) {
	intent := map[string]any{"a": map[string]any{"b": int64(1)}}
	covered := `{"f:a":{"f:b":{}}}`
	other := func(version, fields string) metav1.ManagedFieldsEntry {
		e := entryOf("x", "Update", fields)
		e.APIVersion, e.Subresource = version, "scale"
		return e
	}
	status := entryOf(ours, "Apply", covered)
	status.Subresource = "status"
	for _, tt := range []struct {
		name    string
		managed []metav1.ManagedFieldsEntry
		want    string
	}{
		{"ours", []metav1.ManagedFieldsEntry{entryOf(ours, "Apply", covered)}, ""},
		{"none", nil, "no apply of ours is recorded"},
		{"of another manager", []metav1.ManagedFieldsEntry{entryOf("x", "Apply", covered)}, "no apply of ours is recorded"},
		{"of an update", []metav1.ManagedFieldsEntry{entryOf(ours, "Update", covered)}, "no apply of ours is recorded"},
		{"of a subresource", []metav1.ManagedFieldsEntry{status}, "no apply of ours is recorded"},
		{"without fields", []metav1.ManagedFieldsEntry{{Manager: ours, Operation: "Apply"}}, "no apply of ours is recorded"},
		{"which another co-owns", []metav1.ManagedFieldsEntry{entryOf(ours, "Apply", covered), other("v1", covered)}, ""},
		{"which has a map as a whole, as others have it", []metav1.ManagedFieldsEntry{entryOf(ours, "Apply", `{"f:a":{}}`), other("v1", `{"f:a":{}}`)}, ""},
		{"which has a map as a whole, and another something in it", []metav1.ManagedFieldsEntry{entryOf(ours, "Apply", `{"f:a":{}}`), other("v1", covered)},
			"a is no longer ours: last written by x (scale)"},
		{"which has a map as a whole, and another something in it in another version",
			[]metav1.ManagedFieldsEntry{entryOf(ours, "Apply", `{"f:a":{}}`), other("v2", covered)}, ""},
		{"whose field was taken", []metav1.ManagedFieldsEntry{entryOf(ours, "Apply", `{}`), other("v2", covered)}, "a is no longer ours: last written by x (scale)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if gap, found := witness.Why(tt.managed, ours, intent); found {
				got = gap.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got := witness.Covers(tt.managed, ours, intent); got != (tt.want == "") {
				t.Errorf("Covers returns %t", got)
			}
		})
	}
}

// Covers reads the bytes, and Why the set that the API server would make of them: what it would
// write back gets the same answer from both. Other bytes get any answer, but no panic.
func FuzzCovers(f *testing.F) {
	f.Add(`{"a":[{"name":"x","b":1}],"c":{"d":null}}`, `{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:b":{},"f:name":{}}},"f:c":{}}`, `{"f:c":{"f:d":{}}}`)
	f.Add(`{"a":["x",2,1.5,true],"b":[]}`, `{"f:a":{"v:\"x\"":{},"v:2":{},"v:1.5":{},"v:true":{}}}`, `{}`)
	f.Add(`{"metadata":{"name":"x","labels":{"é\n":"1"}},"apiVersion":"v1"}`, `{"f:metadata":{"f:labels":{"f:\u00e9\n":{}}}}`, `{"f:metadata":{}}`)
	f.Add(`{"a":[{"port":1},{"port":1,"protocol":"UDP"}]}`, `{"f:a":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{},"k:{\"port\":1,\"protocol\":\"UDP\"}":{}}}`, `null`)
	f.Fuzz(func(t *testing.T, intent, own, other string) {
		content := map[string]any{}
		if !decode(intent, &content) {
			return
		}
		managed := func(own, other string) []metav1.ManagedFieldsEntry {
			return []metav1.ManagedFieldsEntry{entryOf(ours, "Apply", own), entryOf("x", "Update", other)}
		}
		witness.Covers(managed(own, other), ours, content)
		witness.Keep(managed(own, other))
		witness.Hash(content)
		a, ok := canonical(own)
		b, okToo := canonical(other)
		if !ok || !okToo {
			return
		}
		_, gap := witness.Why(managed(a, b), ours, content)
		if covers := witness.Covers(managed(a, b), ours, content); covers == gap {
			t.Errorf("Covers and a gap are both %t, of the entries\n%s\n%s", gap, a, b)
		}
		if kept := witness.Covers(witness.Keep(managed(a, b)), ours, content); kept == gap {
			t.Errorf("what is kept is covered: %t", kept)
		}
	})
}

// canonical returns what the API server writes for the fields of an entry.
func canonical(fields string) (string, bool) {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader([]byte(fields))); err != nil {
		return "", false
	}
	data, err := set.ToJSON()
	return string(data), err == nil
}
