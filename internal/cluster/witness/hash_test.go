// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
)

func TestHash(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		equal      bool
	}{
		{"the order of keys", "{a: 1, b: 2}", "{b: 2, a: 1}", true},
		{"the order of items", "{a: [1, 2]}", "{a: [2, 1]}", false},
		{"another value", "{a: 1}", "{a: 2}", false},
		{"another key", "{a: 1}", "{b: 1}", false},
		{"a text and a number", "{a: 1}", "{a: '1'}", false},
		{"an integer and the same with a fraction", "{a: 1}", "{a: 1.0}", true},
		{"a fraction", "{a: 1.5}", "{a: 1}", false},
		{"null and false", "{a: null}", "{a: false}", false},
		{"true and false", "{a: true}", "{a: false}", false},
		{"null and absent", "{a: null}", "{}", false},
		{"an empty map and an empty list", "{a: {}}", "{a: []}", false},
		{"an item in another list", "{a: [[1], []]}", "{a: [[], [1]]}", false},
		{"a text that is cut elsewhere", "{a: [ab, c]}", "{a: [a, bc]}", false},
		{"the annotation", "{metadata: {annotations: {apply.ctrlkit.dev/hash: x, a: b}}}", "{metadata: {annotations: {a: b}}}", true},
		{"the only annotation", "{metadata: {annotations: {apply.ctrlkit.dev/hash: x}}}", "{metadata: {}}", true},
		{"an annotation of this name elsewhere", "{spec: {annotations: {apply.ctrlkit.dev/hash: x}}}", "{spec: {annotations: {}}}", false},
		{"no annotations and no others", "{metadata: {annotations: {}}}", "{metadata: {}}", false},
		{"preconditions", "{metadata: {name: a, uid: b, resourceVersion: c}}", "{metadata: {name: a}}", true},
		{"a name", "{metadata: {name: a}}", "{metadata: {name: b}}", false},
		{"a uid elsewhere", "{spec: {uid: b}}", "{spec: {}}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := witness.Hash(parse(t, tt.a)), witness.Hash(parse(t, tt.b))
			if (a == b) != tt.equal {
				t.Errorf("the hashes are %s and %s, want equal: %t", a, b, tt.equal)
			}
			if len(a) != 22 {
				t.Errorf("the hash %s has %d characters, want 22", a, len(a))
			}
		})
	}
}

// The hash is stored in objects: if it changes, each child is written once.
func TestHashIsStable(t *testing.T) {
	if got, want := witness.Hash(parse(t, configMap)), "fPsMXUdqNCtFPWNXhifY2w"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Two intents have the same hash if, and only if, their JSON is the same.
func TestHashIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := content(3).Draw(t, "a")
		b := content(3).Draw(t, "b")
		if rapid.Bool().Draw(t, "copy") {
			b = runtime.DeepCopyJSONValue(a)
		}
		x, y := map[string]any{"spec": a}, map[string]any{"spec": b}
		same := bytes.Equal(encode(t, x), encode(t, y))
		if (witness.Hash(x) == witness.Hash(y)) != same {
			t.Fatalf("the same JSON: %t, the same hash: %t", same, !same)
		}
		if again := maps.Clone(x); witness.Hash(again) != witness.Hash(x) {
			t.Fatal("the same intent has two hashes")
		}
	})
}

func encode(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// content generates values without much variety, so that some are equal.
func content(depth int) *rapid.Generator[any] {
	leaves := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "\"", "é\n"}), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-1, 2), func(i int64) any { return i }),
		rapid.Map(rapid.SampledFrom([]float64{0.5, 1e30}), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	)
	if depth == 0 {
		return leaves
	}
	below := rapid.Deferred(func() *rapid.Generator[any] { return content(depth - 1) })
	return rapid.OneOf(leaves,
		rapid.Map(rapid.SliceOfN(below, 0, 3), func(s []any) any { return s }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c\\", "\"d"}), below, 0, 3), func(m map[string]any) any { return m }),
	)
}
