// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/health"
)

// What other summaries take for ready, or for failed, and what is not. Each row is a mistake of one
// that is in use.
func TestMistakesOfOtherSummaries(t *testing.T) {
	for _, tt := range []struct{ name, document, want string }{
		{"a failed phase is a failure, not a state that is ready", `{apiVersion: example.com/v1, kind: Thing, status: {phase: Failed}}`, "Failed: its phase is Failed"},
		{"a pending phase is not ready", `{apiVersion: example.com/v1, kind: Thing, status: {phase: Pending}}`, "Progressing: its phase is Pending"},
		{"a phase that is reached hides no failure", `{apiVersion: example.com/v1, kind: Thing, status: {phase: Bound, conditions: [{type: Failed, status: "True", message: not possible}]}}`, "Failed: not possible"},
		{"Ready unknown is no error", `{apiVersion: example.com/v1, kind: Thing, status: {conditions: [{type: Ready, status: Unknown, reason: Checking}]}}`, "Progressing: Ready is Unknown: Checking"},
		{"Updating false is not an error: it is over", `{apiVersion: example.com/v1, kind: Thing, status: {conditions: [{type: Updating, status: "False"}, {type: Ready, status: "True"}]}}`, "Ready"},
		{"an object that is being deleted terminates, whatever it said last", `{apiVersion: example.com/v1, kind: Thing,
			metadata: {deletionTimestamp: "2030-01-01T00:00:00Z", finalizers: [b.example.com/x, a.example.com/x]}, status: {conditions: [{type: Ready, status: "True"}]}}`,
			"Terminating: waits for the finalizers a.example.com/x, b.example.com/x"},
		{"a status of an older generation is not ready", `{apiVersion: example.com/v1, kind: Thing, metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`,
			"Progressing: its controller has not seen the last change"},
		{"a Job that has started is not ready", `{apiVersion: batch/v1, kind: Job, status: {startTime: "2030-01-01T00:00:00Z", active: 1}}`, "Progressing: 0 of 1 Pods succeeded"},
		{"a status that can't be read is not ready", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {conditions: wrong}}`, "Unknown: status.conditions is no list"},
		{"rules of a kind do not hide what holds for all", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Stalled, status: "True", reason: Nope, message: stalled}]}}`,
			"Failed: stalled"},
		{"a Deployment is progressing by a condition that is true when it is done", `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, status: {conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}, {type: Available, status: "True"}]}}`, "Ready"},
		{"integers of encoding/json count", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 1}}`,
			"Progressing: 1 of 3 replicas created"},
		{"a group is compared, not its reverse", `{apiVersion: example.com/v1, kind: Pod, status: {conditions: [{type: Ready, status: "True"}]}}`, "Ready"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := health.Of(parse(t, tt.document)).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// thing is a kind that no scheme knows.
type thing struct{ corev1.ConfigMap }

func TestFormsOfObjects(t *testing.T) {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}, Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1}}
	web.TypeMeta = metav1.TypeMeta{} // as caches have it
	deleted := metav1.Now()
	for _, tt := range []struct {
		name string
		obj  client.Object
		want string
	}{
		{"typed, without its kind", web, "Progressing: 1 of 2 replicas created"},
		{"typed, of no scheme", &thing{}, "Ready: NoStatus"},
		{"nil", nil, "Unknown: there is no object"},
		{"a nil pointer", (*appsv1.Deployment)(nil), "Unknown: there is no object"},
		{"a Service", &corev1.Service{}, "Ready"},
		{"a Service without the address of its load balancer", &corev1.Service{Spec: corev1.ServiceSpec{Type: "LoadBalancer", ClusterIP: "10.0.0.1"}}, "Progressing: its load balancer has no address"},
		{"a Service with a condition", &corev1.Service{Status: corev1.ServiceStatus{Conditions: []metav1.Condition{{Type: "Stalled", Status: "True", Message: "no addresses"}}}}, "Failed: no addresses"},
		{"a Service, deleted", &corev1.Service{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}, "Terminating: Deleted"},
		{"metadata", &metav1.PartialObjectMetadata{}, "Unknown: only its metadata is at hand, not its status"},
		{"metadata of a kind without a status", &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}, "Ready: NoStatus"},
		{"metadata, deleted", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{"example.com/a"}}}, "Terminating: waits for the finalizer example.com/a"},
		{"a Secret, deleted", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}, "Terminating: Deleted"},
	} {
		if got := health.Of(tt.obj).String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	if got, want := health.OfKind(web, kind), health.Of(web); got != want {
		t.Errorf("of a kind: %v, want %v", got, want)
	}
}
