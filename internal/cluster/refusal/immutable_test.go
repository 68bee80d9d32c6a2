// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ctrlkit/ctrlkit/internal/cluster/refusal"
)

var kind = schema.GroupKind{Group: "batch", Kind: "Job"}

func invalid(errs ...*field.Error) error {
	return fmt.Errorf("applying it: %w", apierrors.NewInvalid(kind, "a", errs))
}

// denied is the answer of an admission policy or a webhook, with the reason Invalid and causes that a
// webhook may have copied from a validation.
func denied(text string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: text,
		Details: &metav1.StatusDetails{Group: kind.Group, Kind: kind.Kind, Name: "a", Causes: causes},
	}}
}

func TestImmutable(t *testing.T) {
	path := field.NewPath("spec", "x")
	immutable := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: `Invalid value: "b": field is immutable`, Field: "spec.x"}
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"a field", invalid(field.Invalid(path, "b", "field is immutable")), true},
		{"a ConfigMap", invalid(field.Forbidden(path, "field is immutable when `immutable` is set")), true},
		{"a StatefulSet", invalid(field.Forbidden(path, "updates to statefulset spec for fields other than 'replicas' are forbidden")), true},
		{"a Pod, with a difference", invalid(field.Forbidden(path, "pod updates may not change fields other than `spec.containers[*].image`\n  core.PodSpec{\n- \tHost: \"a\",\n")), true},
		{"a binding", invalid(field.Invalid(path, "b", "cannot change roleRef")), true},
		{"an address", invalid(field.Invalid(path, "b", "may not change once set")), true},
		{"a transition rule", invalid(field.Invalid(path, "b", "storageClass is immutable")), true},
		{"a transition rule, once set", invalid(field.Invalid(path, "b", "Value is immutable once set.")), true},
		{"a transition rule without words", invalid(field.Invalid(path, "b", "failed rule: self == oldSelf")), true},

		{"a rule that lets it grow", invalid(field.Invalid(path, 1, "may only grow")), false},
		{"a rule without words that lets it grow", invalid(field.Invalid(path, 1, "failed rule: self >= oldSelf")), false},
		{"a rule with a condition", invalid(field.Invalid(path, 1, "size is immutable while the volume is attached")), false},
		{"a rule that it may grow, of a value that says immutable", invalid(field.Invalid(path, "it is immutable", "may only grow")), false},
		{"a rule with two halves", invalid(field.Invalid(path, 1, "size may only grow; class is immutable")), false},
		{"a union", invalid(field.Forbidden(path, "may not be specified when strategy `type` is 'Recreate'")), false},
		{"one of two causes", invalid(field.Invalid(path, "b", "field is immutable"), field.Invalid(path, 1, "may only grow")), false},
		{"an invalid value", invalid(field.Invalid(path, 70000, "must be between 1 and 65535, inclusive")), false},
		{"a missing value", invalid(field.Required(path, "field is immutable")), false},
		{"another object", fmt.Errorf("applying it: %w", apierrors.NewInvalid(kind, "b", field.ErrorList{field.Invalid(path, "b", "field is immutable")})), false},

		{"a policy", denied(`jobs.batch "a" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: field is immutable`, metav1.StatusCause{Message: "field is immutable"}), false},
		{"a webhook", denied(`admission webhook "v.example.com" denied the request: Job.batch "a" is invalid: spec.x: Invalid value: "b": field is immutable`, immutable), false},
		{"a quota", apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "a", errors.New("exceeded quota: q")), false},
		{"a missing permission", apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "a", errors.New("field is immutable")), false},
		{"an error in these words", errors.New("field is immutable"), false},
	} {
		if got := refusal.Immutable(tt.err, kind, "a"); got != tt.want {
			t.Errorf("%s: %t: %v", tt.name, got, tt.err)
		}
	}
}

func TestDuplicates(t *testing.T) {
	server := errors.New(`failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]`)
	got := refusal.Duplicates(fmt.Errorf("applying it: %w", server))
	if want := `spec.template.spec.containers[name="c"].env has two items with name="A"`; got == nil || got.Error() != want || !errors.Is(got, server) {
		t.Errorf("%v, want %s", got, want)
	}
	for _, other := range []error{nil, errors.New(`failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.x: field not declared in schema`)} {
		if got := refusal.Duplicates(other); got != nil {
			t.Errorf("%v: %v", other, got)
		}
	}
}
