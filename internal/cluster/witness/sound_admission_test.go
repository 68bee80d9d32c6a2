// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The policy gives each ConfigMap with the label mutate its own value of a, whatever was written.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mutate.ctrlkit.dev}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  matchConditions:
  - {name: labelled, expression: 'has(object.metadata.labels) && "mutate" in object.metadata.labels && has(object.data)'}
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data/a", value: "mutated"}]'}
`

const binding = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mutate.ctrlkit.dev}
spec: {policyName: mutate.ctrlkit.dev}
`

// runAdmission runs the cases in which an admission policy changes a field of ours. The server in
// memory does not apply such policies.
func runAdmission(t *testing.T, s *server) {
	for resource, text := range map[string]string{"mutatingadmissionpolicies": policy, "mutatingadmissionpolicybindings": binding} {
		api := s.client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
		if _, err := api.Create(t.Context(), &unstructured.Unstructured{Object: parse(t, text)}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const intent = "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {mutate: 'yes'}}, data: {a: '1', b: '2'}}"
	eventually(t, "the policy", func() bool {
		c := s.child(t, "probe", intent)
		u, err := c.api.Create(t.Context(), &unstructured.Unstructured{Object: c.intent}, metav1.CreateOptions{DryRun: []string{"All"}})
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err == nil && valueOf(u) == "mutated"
	})

	t.Run("of our apply", func(t *testing.T) {
		c := s.child(t, "ours", intent)
		before := c.apply()
		if got := valueOf(before); got != "mutated" {
			t.Fatalf("data.a is %s", got)
		}
		if !c.unchanged(before) {
			t.Errorf("just applied: %s\n%s", c.unchangedWhy(before), managedFields(before))
		}
		if got, why, live := c.judge(); got != unchanged {
			t.Errorf("got %s (%s), want %s\n%s", got, why, unchanged, managedFields(live))
		}
	})

	// The policy begins to match when another client adds the label. The API server does not record
	// what policies change, so the field remains ours. To apply it again would not change it either.
	t.Run("of an update by another client", func(t *testing.T) {
		c := s.child(t, "theirs", configMap)
		c.apply()
		c.merge("other", "{metadata: {labels: {mutate: 'yes'}}}")
		if got := valueOf(c.get()); got != "mutated" {
			t.Fatalf("data.a is %s", got)
		}
		if got, why, live := c.judge(); got != unchanged {
			t.Errorf("got %s (%s), want %s\n%s", got, why, unchanged, managedFields(live))
		}
	})

	// When the policy no longer matches, its value remains, and only an apply would repair it.
	t.Run("that has ended", func(t *testing.T) {
		c := s.child(t, "ended", configMap)
		c.apply()
		c.merge("other", "{metadata: {labels: {mutate: 'yes'}}}")
		c.patch("other", types.MergePatchType, "{metadata: {labels: {mutate: null}}}")
		if got, why, live := c.judge(); got != hole {
			t.Errorf("got %s (%s), want %s\n%s", got, why, hole, managedFields(live))
		}
	})
}

func valueOf(u *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(u.Object, "data", "a")
	return value
}
