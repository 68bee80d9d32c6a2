// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
)

// shopOptions has a sample of a kind whose size is from 1 to 5, and even.
func shopOptions(expression string) *Options {
	low, high := 1.0, 6.0
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer", Minimum: &low, Maximum: &high, XValidations: apiextensionsv1.ValidationRules{{Rule: "self % 2 == 0"}}},
	}}
	d := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Shop", ListKind: "ShopList", Plural: "shops", Singular: "shop"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}},
		}}},
	}}
	d.Name = "shops.example.com"
	sample := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": int64(4)},
	}}
	return &Options{
		Definitions: []*apiextensionsv1.CustomResourceDefinition{d}, Samples: []run.Manifest{{Object: sample}}, Namespace: "default",
		Transitions: regexp.MustCompile(expression), Progress: func(string) {},
	}
}

// What the API server refuses is no transition, and what it accepts leaves the other samples alone.
func TestTransitions(t *testing.T) {
	t.Parallel()
	o := shopOptions(`spec\.size`)
	changes, refused, err := o.changes()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range changes {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"shop/a spec.size: removed", "shop/a spec.size: maximum, 6"}, names); diff != "" || refused != 2 {
		t.Errorf("%d refused, -want +got:\n%s", refused, diff)
	}
	if size, _, _ := unstructured.NestedInt64(o.Samples[0].Object.Object, "spec", "size"); size != 4 {
		t.Errorf("the sample has the size %d", size)
	}
	if _, err := shopOptions("none").transitions(); !errors.Is(err, ErrNoTransitions) {
		t.Errorf("got the error %v", err)
	}
}

// An operator fails at a mistake if something is missing then, and at another change if all is.
func TestFails(t *testing.T) {
	t.Parallel()
	o := shopOptions("")
	of := func(things ...string) snapshot.Snapshot {
		var objects []apiserver.Object
		for _, thing := range things {
			kind, name, _ := strings.Cut(thing, " ")
			namespace, name, namespaced := strings.Cut(name, "/")
			if !namespaced {
				namespace, name = "", namespace
			}
			objects = append(objects, apiserver.Object{
				Resource: schema.ParseGroupResource(kind).WithVersion("v1"), Namespace: namespace, Name: name,
				Content: map[string]any{"metadata": map[string]any{"name": name, "uid": thing}},
			})
		}
		return snapshot.Take(snapshot.Source{Objects: objects, Names: strings.NewReplacer(), Compared: func(uid types.UID) bool { return uid != "nodes node-1" }})
	}
	before := of("shops.example.com default/a", "secrets default/a", "services default/a", "nodes node-1")
	for _, test := range []struct {
		name string
		kind transition.Kind
		got  snapshot.Snapshot
		want bool
	}{
		{"all is there", transition.Wrong, before, false},
		{"a part is missing after a mistake", transition.Wrong, of("shops.example.com default/a", "secrets default/a"), true},
		{"a part is no longer wanted", transition.Changed, of("shops.example.com default/a", "secrets default/a"), false},
		{"all is missing", transition.Minimum, of("shops.example.com default/a", "nodes node-1"), true},
	} {
		c := &change{Change: transition.Change{Transition: transition.Transition{Kind: test.kind}}, samples: o.Samples}
		if got := c.fails(before, test.got); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
