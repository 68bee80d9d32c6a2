// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/memory"
)

// UserActor is the actor of the changes that [ApplyTo] and [DeleteFrom] make.
const UserActor = userActor

// ApplyTo does to an object of a cluster what "kubectl apply" does. namespace is that of an object
// that has none.
func ApplyTo(c *memory.Cluster, obj *unstructured.Unstructured, namespace string) error {
	return applyTo(c, obj, namespace)
}

// DeleteFrom does to an object of a cluster what "kubectl delete" does, without waiting.
func DeleteFrom(c *memory.Cluster, resource schema.GroupVersionResource, namespace, name string) error {
	return remove(c, resource, namespace, name)
}

// PathOf returns the path of an object in the API, or that of its collection if name is empty.
func PathOf(resource schema.GroupVersionResource, namespace, name string) string {
	return pathOf(resource, namespace, name)
}

// Essential returns a copy of an object without what the API server keeps itself, without what
// grows with each change, and without the times in it.
func Essential(content map[string]any) map[string]any {
	essential, _ := timeless(essential(content)).(map[string]any)
	return essential
}

// IsHousekeeping reports whether objects of a resource are about processes, and say nothing of what
// an operator does.
func IsHousekeeping(resource schema.GroupResource) bool { return isHousekeeping(resource) }

// IsOperator reports whether the actor of a change is a client of the cluster's API.
func IsOperator(actor string) bool { return isOperator(actor) }
