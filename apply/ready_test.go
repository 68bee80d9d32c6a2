// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Typed objects of a cache have no apiVersion and kind. They are judged by the rules of their kind
// all the same.
func TestReadinessOfTypedObjects(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status appsv1.DeploymentStatus
		ready  bool
		lacks  string
	}{
		{"of the generation before", appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}, false, "Deployment generation is 2, but latest observed generation is 1"},
		{"nothing is created", appsv1.DeploymentStatus{ObservedGeneration: 2}, false, "0 of 2 replicas created"},
		{"old ones are available", appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 2}, false, "1 of 2 replicas updated"},
		{"one is available", appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 1}, false, "1 of 2 replicas available"},
		{"all are", appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			it := &item{gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: tt.status,
			}
			ready, _, lacks, err := newStates().of(it, deployment)
			if ready != tt.ready || !ready && lacks != tt.lacks || err != nil {
				t.Errorf("ready: %t, lacks %q, error %v; want %t and %q", ready, lacks, err, tt.ready, tt.lacks)
			}
		})
	}
}
