// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FinalizerPolicy returns an admission policy, with its binding, that adds a finalizer to each
// object of a resource when the object is created. The command "ctrlkit generate finalizer-policy"
// writes both as YAML.
//
// Why a policy: a finalizer that the operator adds later can be lost. If the object is deleted at
// the same instant, the API server may accept the write and remove the object all the same. A
// finalizer that is there from the beginning can't be lost, and it saves one write for each object.
//
//   - The policy is optional. An engine of package step looks for its finalizer and adds it where
//     the policy has not. Therefore the failure policy is Ignore.
//   - In the first seconds after the definition of a custom resource was created, an API server
//     with a policy for that resource answers creations with 503, whatever the failure policy,
//     because it has not read the schema yet. Clients that create objects right after the
//     definition must retry.
//   - It needs Kubernetes 1.36, or an earlier version that serves MutatingAdmissionPolicy as
//     admissionregistration.k8s.io/v1.
//
// The error is about the arguments: the resource must have a version and a lower-case plural, the
// finalizer must be a qualified name with a domain.
func FinalizerPolicy(
	resource schema.GroupVersionResource, finalizer string,
) (*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding, error) {
	switch {
	case resource.Version == "" || resource.Resource == "" || resource.Resource != strings.ToLower(resource.Resource):
		return nil, nil, errors.New(`the resource needs a version and its plural in lower case, for example "backups.v1.example.com"`)
	case len(validation.IsQualifiedName(finalizer)) > 0 || !strings.Contains(finalizer, "/"):
		return nil, nil, fmt.Errorf(`finalizer %q is not a qualified name such as "example.com/backup"`, finalizer)
	}
	name := strings.ReplaceAll(finalizer, "/", ".") + "." + resource.Resource
	policy := &admissionv1.MutatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource},
					},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name:       "has-no-such-finalizer",
				Expression: fmt.Sprintf("!has(object.metadata.finalizers) || !(%q in object.metadata.finalizers)", finalizer),
			}},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: fmt.Sprintf(
					`has(object.metadata.finalizers) ? [JSONPatch{op: "add", path: "/metadata/finalizers/-", value: %[1]q}]`+
						` : [JSONPatch{op: "add", path: "/metadata/finalizers", value: [%[1]q]}]`, finalizer)},
			}},
			FailurePolicy:      new(admissionv1.Ignore),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	return policy, binding, nil
}
