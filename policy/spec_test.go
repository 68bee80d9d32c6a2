// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

// says returns defaults of an operator whose objects have a policy in their spec.
func says(annotationAndValue ...string) policy.Defaults {
	return policy.Defaults{Spec: func(metav1.Object) map[string]string {
		all := make(map[string]string)
		for i := 0; i < len(annotationAndValue); i += 2 {
			all["policy.ctrlkit.dev/"+annotationAndValue[i]] = annotationAndValue[i+1]
		}
		return all
	}}
}

// What the spec says holds if the object has no annotation, and the namespace is not asked then.
func TestPolicyInSpec(t *testing.T) {
	for _, tt := range []struct {
		name              string
		object, namespace *metav1.PartialObjectMetadata
		defaults          policy.Defaults
		deletion          policy.Deletion
		message           string // a part of it
	}{
		{"nothing", object(), namespace(), says(), policy.DeletionDelete, ""},
		{"the spec", object(), namespace(), says("reclaim", "retain"), policy.DeletionDetach, `the spec says "retain" for policy.ctrlkit.dev/reclaim`},
		{"before the namespace", object(), namespace("reclaim", "delete"), says("reclaim", "retain"), policy.DeletionDetach, `the spec says "retain"`},
		{"nothing, and the namespace", object(), namespace("reclaim", "retain"), says(), policy.DeletionDetach, "of namespace prod"},
		{"another part, and the namespace", object(), namespace("reclaim", "retain"), says("allow", "observe,create,delete"), policy.DeletionDetach, "of namespace prod"},
		{"after the object", object("reclaim", "delete"), namespace(), says("reclaim", "retain"), policy.DeletionDelete, ""},
		{"a wrong value", object(), namespace(), says("reclaim", "Orphan"), policy.DeletionBlocked, "correct the spec, or give the object the annotation"},
		{"a wrong name", object(), namespace(), says("deletion", "retain"), policy.DeletionBlocked, "there is no such annotation"},
		{"a wrong value that the object hides", object("reclaim", "delete"), namespace(), says("reclaim", "Orphan"), policy.DeletionDelete, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := policy.Resolve(tt.object, tt.namespace, tt.defaults)
			if got := d.OnDeletion(); got != tt.deletion {
				t.Errorf("deletion is %s, want %s", got, tt.deletion)
			}
			if got := d.Message(); !strings.Contains(got, tt.message) || tt.message == "" && got != "" {
				t.Errorf("message is %q, want %q in it", got, tt.message)
			}
		})
	}
}

// The request of a namespace counts also beside a spec, and a spec alone is no namespace.
func TestRequestBesideSpec(t *testing.T) {
	d := policy.Resolve(object(), namespace("reconcile-now", "7"), says("reclaim", "retain"))
	var status policy.RequestStatus
	d.Request().Acknowledge(&status)
	if status.LastHandledNamespaceReconcileAt != "7" {
		t.Errorf("acknowledged %+v", status)
	}
	scoped := object("reconcile-now", "8")
	scoped.Namespace = ""
	status = policy.RequestStatus{}
	policy.Resolve(scoped, nil, says("reclaim", "retain")).Request().Acknowledge(&status)
	if status.LastHandledNamespaceReconcileAt != "" || status.LastHandledReconcileAt != "8" {
		t.Errorf("acknowledged %+v of an object without a namespace", status)
	}
}
