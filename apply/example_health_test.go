// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
)

func ExampleHealthOf() {
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 1},
	}
	bucket := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "s3.example.com/v1", "kind": "Bucket", "metadata": map[string]any{"name": "photos"},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "access denied"},
		}},
	}}
	for _, obj := range []client.Object{web, bucket} {
		if h := apply.HealthOf(obj); !h.IsReady() {
			fmt.Println(obj.GetName(), h)
		}
	}
	// Output:
	// web Progressing: 1 of 2 replicas updated
	// photos Failed: access denied
}
