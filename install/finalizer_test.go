// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/install"
)

const finalizer = "test.example.com/things"

func TestFinalizerPolicy(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "things"}
	policy, binding, err := install.FinalizerPolicy(resource, finalizer)
	if err != nil {
		t.Fatal(err)
	}
	const name = "test.example.com.things.things"
	if policy.Name != name || binding.Name != name || binding.Spec.PolicyName != name {
		t.Errorf("names: %q, %q, %q", policy.Name, binding.Name, binding.Spec.PolicyName)
	}
	for _, head := range []struct{ got, want string }{
		{policy.APIVersion, "admissionregistration.k8s.io/v1"},
		{policy.Kind, "MutatingAdmissionPolicy"},
		{binding.APIVersion, "admissionregistration.k8s.io/v1"},
		{binding.Kind, "MutatingAdmissionPolicyBinding"},
		{string(*policy.Spec.FailurePolicy), "Ignore"},
		{string(policy.Spec.ReinvocationPolicy), "Never"},
	} {
		if head.got != head.want {
			t.Errorf("got %q, want %q", head.got, head.want)
		}
	}
	want := []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{"CREATE"},
		Rule:       admissionv1.Rule{APIGroups: []string{"test.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"things"}},
	}}}
	if diff := cmp.Diff(want, policy.Spec.MatchConstraints.ResourceRules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	condition, patch := policy.Spec.MatchConditions[0].Expression, policy.Spec.Mutations[0].JSONPatch.Expression
	if want := `!has(object.metadata.finalizers) || !("test.example.com/things" in object.metadata.finalizers)`; condition != want {
		t.Errorf("condition: got %s, want %s", condition, want)
	}
	if got := strings.Count(patch, `"test.example.com/things"`); got != 2 {
		t.Errorf("the patch names the finalizer %d times, want twice: %s", got, patch)
	}
}

func TestFinalizerPolicyRefuses(t *testing.T) {
	tests := []struct {
		name      string
		resource  schema.GroupVersionResource
		finalizer string
	}{
		{"no version", schema.GroupVersionResource{Group: "g", Resource: "things"}, finalizer},
		{"no resource", schema.GroupVersionResource{Group: "g", Version: "v1"}, finalizer},
		{"a kind", schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "Thing"}, finalizer},
		{"no finalizer", schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "things"}, ""},
		{"a finalizer without a domain", schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "things"}, "things"},
		{"a finalizer with a quote", schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "things"}, `example.com/"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, _, err := install.FinalizerPolicy(test.resource, test.finalizer); err == nil {
				t.Error("there was no error")
			}
		})
	}
}
