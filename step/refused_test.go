// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A field of the status that the definition refuses, because it is older than the operator, costs
// that field: the conditions say which one, and the rest of the status is written.
func TestAStatusFieldThatTheDefinitionRefuses(t *testing.T) {
	tests := []struct {
		name, phase, ready string
		size               int
	}{
		{"refused", "New", `False Invalid: writing the status: Thing.test.example.com "a" is invalid: status.phase: Unsupported value: "New"`, 3},
		{"accepted", "Old", "True Ready", 3},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
			c.must(c.user.Get(t.Context(), client.ObjectKey{Name: "things.test.example.com"}, crd))
			versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
			properties := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
			status := properties["status"].(map[string]any)["properties"].(map[string]any)
			status["phase"] = map[string]any{"type": "string", "enum": []any{"", "Old"}}
			c.must(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
			c.must(c.user.Update(t.Context(), crd))

			c.start(operator{name: "op", steps: steps{doing("Work", changing(func(obj *Thing) { obj.Status.Phase, obj.Status.Size = test.phase, 3 }))}})
			pass(time.Second)
			if got := describe(c.thing(), condition.Ready); !strings.HasPrefix(got, test.ready) {
				t.Errorf("Ready: %s, want %s", got, test.ready)
			}
			same(t, "size", test.size, c.thing().Status.Size)
			writes := c.requested("PATCH status")
			pass(2 * time.Minute) // it is tried again after 5, 10, 20 and 40 seconds, and writes nothing
			if again := c.requested("PATCH status") - writes; test.phase == "New" && again > 5 || test.phase == "Old" && again > 0 {
				t.Errorf("%d further writes in two minutes", again)
			}
			c.noHotLoop("op")
		})
	}
}
