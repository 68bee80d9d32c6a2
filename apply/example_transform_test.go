// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/ctrlkit/ctrlkit/apply"
)

// The cache keeps what was applied, by whichever field owner.
func ExampleCacheTransform() {
	options := cache.Options{DefaultTransform: apply.CacheTransform()} // for ctrl.Options.Cache

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "website-controller", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
		{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:b":{}}}`)},
	}}}
	if _, err := options.DefaultTransform(cm); err != nil {
		panic(err)
	}
	for _, entry := range cm.ManagedFields {
		fmt.Println(entry.Manager, entry.FieldsV1)
	}
	// Output: website-controller {"f:data":{"f:a":{}}}
}
