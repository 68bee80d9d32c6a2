// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

// The namespace is not managed for now, and one object in it is.
func ExampleResolve() {
	prod := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Annotations: map[string]string{
		"policy.ctrlkit.dev/reconcile": "skip",
		"policy.ctrlkit.dev/reclaim":   "retain",
	}}}
	logs := &Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "logs"}}
	images := &Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "images", Annotations: map[string]string{
		"policy.ctrlkit.dev/reconcile": "manage",
	}}}
	for _, bucket := range []*Bucket{logs, images} {
		d := policy.Resolve(bucket, prod, policy.Defaults{})
		fmt.Printf("%s: may update: %v, on deletion: %s; %s\n", bucket.Name, d.Allows(policy.VerbUpdate), d.OnDeletion(), d.Message())
	}
	// Output:
	// logs: may update: false, on deletion: detach; annotation policy.ctrlkit.dev/reconcile of namespace prod is "skip": the status is refreshed, and nothing is created, updated or deleted
	// images: may update: true, on deletion: detach; annotation policy.ctrlkit.dev/reclaim of namespace prod is "retain": the deletion of the object deletes nothing else
}

// What is written wrongly does not fall back to a default.
func ExampleDecision_Message() {
	bucket := &Bucket{ObjectMeta: metav1.ObjectMeta{Name: "logs", Annotations: map[string]string{policy.ReclaimAnnotation: "retian"}}}
	d := policy.Resolve(bucket, nil, policy.Defaults{})
	fmt.Println(d.OnDeletion(), d.Reason())
	fmt.Println(d.Message())
	// Output:
	// blocked InvalidPolicy
	// annotation policy.ctrlkit.dev/reclaim of the object is "retian": use "delete" or "retain" (did you mean "retain"?): nothing is created, updated or deleted, and a deletion waits; correct the annotation, or remove it
}

func ExampleParseVerbs() {
	verbs, err := policy.ParseVerbs("Observe, create, update")
	fmt.Println(verbs, verbs.Has(policy.VerbUpdate), verbs.Has(policy.VerbDelete), err)
	_, err = policy.ParseVerbs("observe, destroy")
	fmt.Println(err)
	// Output:
	// observe,create,update true false <nil>
	// "observe, destroy" is invalid: there is no verb "destroy": use "*", or some of "observe", "create", "update", "delete" and "late-initialize", separated by commas
}

// A user has requested a reconcile, and waits for the status.
func ExampleRequest() {
	bucket := &Bucket{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{policy.ReconcileNowAnnotation: "42"}}}
	status := policy.StatusOf(bucket)
	request := policy.RequestOf(bucket)
	fmt.Println(request.Pending(status))
	request.Acknowledge(status) // after it was observed
	fmt.Println(request.Pending(status), bucket.Status.LastHandledReconcileAt)
	// Output:
	// true
	// false 42
}

// policyOf returns what the spec of a Bucket says of its policy.
func policyOf(obj metav1.Object) map[string]string {
	says := map[string]string{}
	if bucket, ok := obj.(*Bucket); ok && bucket.DeletionPolicy == "Orphan" {
		says[policy.ReclaimAnnotation] = string(policy.ReclaimRetain)
	}
	return says
}

// Fields that a kind had before keep their meaning.
func ExampleDefaults_spec() {
	defaults := policy.Defaults{Spec: policyOf, IgnoreNamespaces: true}
	for _, bucket := range []*Bucket{{}, {DeletionPolicy: "Orphan"}} {
		fmt.Println(policy.Resolve(bucket, nil, defaults).OnDeletion())
	}
	// Output:
	// delete
	// detach
}
