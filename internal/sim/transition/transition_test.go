// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package transition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
)

// definitionOf returns a definition whose spec has properties, in YAML.
func definitionOf(tb testing.TB, properties string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	text := `
metadata: {name: shops.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Shop, listKind: ShopList, plural: shops, singular: shop}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, properties: {ready: {type: boolean}}}
          spec:
            type: object
            properties:
` + indent(properties)
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), d); err != nil {
		tb.Fatal(err)
	}
	return d
}

func indent(text string) string {
	return "              " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n              ") + "\n"
}

// objectOf returns an object with a spec, in YAML.
func objectOf(tb testing.TB, spec string) map[string]any {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte("{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: default}, spec: " + spec + "}"))
	if err != nil {
		tb.Fatal(err)
	}
	object, err := runtime.Decode(unstructuredJSON, data)
	if err != nil {
		tb.Fatal(err)
	}
	return object.(*unstructured.Unstructured).Object
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, properties, spec string
		want                   []string
	}{
		{"a number with bounds", "size: {type: integer, minimum: 1, maximum: 5}", "{size: 5}", []string{
			"spec.size: changed, 4", "spec.size: minimum, 1", "spec.size: removed",
		}},
		{"a number without bounds", "size: {type: integer}", "{size: 3}", []string{
			"spec.size: changed, 4", "spec.size: wrong, -1 (below zero)", "spec.size: minimum, 0", "spec.size: removed",
		}},
		{"bounds that are excluded", "size: {type: integer, minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: true}", "{size: 4}", []string{
			"spec.size: changed, 5", "spec.size: minimum, 2", "spec.size: removed", "spec.size: maximum, 8",
		}},
		{"a switch that is not there", "paused: {type: boolean}", "{}", []string{"spec.paused: added, true"}},
		{"an enumeration", "mode: {type: string, enum: [fast, safe]}", "{mode: fast}", []string{`spec.mode: changed, "safe"`, "spec.mode: removed"}},
		{"an image", "image: {type: string}", "{image: nginx:1}", []string{
			`spec.image: changed, "nginx:1-2"`, `spec.image: wrong, "registry.invalid/none:0" (no such image)`,
			`spec.image: wrong, "not an image" (not a reference)`, "spec.image: removed", `spec.image: empty, ""`,
		}},
		{"what a pattern does not allow", "schedule: {type: string, pattern: '^[0-9 *]+$'}", "{schedule: '1 * * * *'}", []string{
			`spec.schedule: changed, "7 3 * * *"`, `spec.schedule: wrong, "99 99 * * *" (no such time)`, "spec.schedule: removed",
		}},
		{"a quantity", "memory: {x-kubernetes-int-or-string: true}", "{memory: 1Gi}", []string{
			`spec.memory: changed, "2Gi"`, `spec.memory: wrong, "0" (none)`, `spec.memory: wrong, "-1" (below zero)`, `spec.memory: wrong, "much" (not a quantity)`,
			"spec.memory: removed", `spec.memory: empty, ""`,
		}},
		{"a text and its items", "tags: {type: array, items: {type: string, maxLength: 3}}", "{tags: [ab]}", []string{
			`spec.tags.0: changed, "ab2"`, "spec.tags: removed", "spec.tags: empty, []", `spec.tags.0: empty, ""`, `spec.tags.0: maximum, "xxx"`,
		}},
		{"an item that has a key", "ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, open: {type: boolean}}}}", "{ports: [{id: a, open: true}]}", []string{
			"spec.ports: removed", `spec.ports.0.id: changed, "a2"`, "spec.ports.0.open: changed, false", "spec.ports: empty, []", "spec.ports.0: empty, {}",
			"spec.ports.0.open: removed", `spec.ports.0.id: empty, ""`,
		}},
		{"a map", "labels: {type: object, additionalProperties: {type: string}}", "{labels: {a: b}}", []string{
			`spec.labels.a: changed, "b2"`, "spec.labels: removed", "spec.labels: empty, {}", "spec.labels.a: removed", `spec.labels.a: empty, ""`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			schema, err := transition.SchemaOf(definitionOf(t, test.properties), "v1")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range transition.Of(schema, objectOf(t, test.spec)) {
				if name := c.String(); !strings.HasPrefix(name, "spec: ") {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The object that a transition is made for stays as it is, and what the transition does not name
// stays in the copy.
func TestTransitionOf(t *testing.T) {
	t.Parallel()
	object := objectOf(t, "{list: [{a: 1, b: 2}, {a: 3}]}")
	changed := transition.Transition{Path: []string{"spec", "list", "0", "a"}, Kind: transition.Changed, Value: int64(7)}.Of(object)
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"a": int64(1)}}, transition.Transition{Path: []string{"spec", "a"}, Kind: transition.Added, Value: int64(1)}.Of(map[string]any{})); diff != "" {
		t.Errorf("of an object without a spec: -want +got:\n%s", diff)
	}
	removed := transition.Transition{Path: []string{"spec", "list", "0", "b"}, Kind: transition.Removed}.Of(object)
	for _, test := range []struct {
		got  map[string]any
		want string
	}{
		{object, "{list: [{a: 1, b: 2}, {a: 3}]}"}, {changed, "{list: [{a: 7, b: 2}, {a: 3}]}"}, {removed, "{list: [{a: 1}, {a: 3}]}"},
	} {
		if diff := cmp.Diff(objectOf(t, test.want), test.got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// A version without a schema is an error that names both.
func TestSchemaOf(t *testing.T) {
	t.Parallel()
	_, err := transition.SchemaOf(definitionOf(t, "size: {type: integer}"), "v2")
	if err == nil || !strings.Contains(err.Error(), "shops.example.com has no schema for version v2") {
		t.Errorf("got the error %v", err)
	}
}

// A status, or an Event about the object, reports a mistake. A generation does not, nor does what
// is about another object.
func TestReported(t *testing.T) {
	t.Parallel()
	shop := &unstructured.Unstructured{Object: objectOf(t, "{}")}
	status := func(name string, status map[string]any) map[string]any {
		o := shop.DeepCopy()
		o.SetName(name)
		o.Object["status"] = status
		return o.Object
	}
	event := func(field, name string) map[string]any {
		return map[string]any{"kind": "Event", field: map[string]any{"name": name}}
	}
	for _, test := range []struct {
		name    string
		content map[string]any
		want    bool
	}{
		{"a status", status("a", map[string]any{"error": "no image"}), true},
		{"an empty status", status("a", map[string]any{"error": ""}), false},
		{"a generation", status("a", map[string]any{"observedGeneration": int64(2)}), false},
		{"the status of another one", status("b", map[string]any{"error": "no image"}), false},
		{"an Event", event("regarding", "a"), true},
		{"an Event of old", event("involvedObject", "a"), true},
		{"an Event about another one", event("regarding", "b"), false},
	} {
		if got := transition.Reported([]map[string]any{test.content}, shop); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}

func TestAlternate(t *testing.T) {
	t.Parallel()
	got := transition.Alternate([]string{"a1", "a2", "a3"}, nil, []string{"c1"})
	if diff := cmp.Diff([]string{"a1", "c1", "a2", "a3"}, got); diff != "" {
		t.Error(diff)
	}
}
