// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The finalizers that hold claims and volumes while they are in use. Upstream, the admission plugin
// StorageObjectInUseProtection adds them, and the controllers pvc-protection and pv-protection
// remove them.
const (
	claimProtection  = "kubernetes.io/pvc-protection"
	volumeProtection = "kubernetes.io/pv-protection"
)

var (
	podsStorage    = schema.GroupResource{Resource: "pods"}
	claimsStorage  = schema.GroupResource{Resource: "persistentvolumeclaims"}
	volumesStorage = schema.GroupResource{Resource: "persistentvolumes"}
)

// protection returns the finalizer that protects objects of a kind while they are in use, or
// nothing.
func (k *kind) protection() string {
	switch k.storage {
	case claimsStorage:
		return claimProtection
	case volumesStorage:
		return volumeProtection
	}
	return ""
}

// protect adds the finalizer to a new claim or volume.
func (k *kind) protect(obj *unstructured.Unstructured) {
	if f := k.protection(); f != "" && !slices.Contains(obj.GetFinalizers(), f) {
		obj.SetFinalizers(append(obj.GetFinalizers(), f))
	}
}

// unprotect removes the finalizer of a claim or volume that is being deleted and not in use, and
// reports whether it did.
func (c *controllers) unprotect(k *kind, v *version) bool {
	f := k.protection()
	if f == "" || !slices.Contains(v.unstructured().GetFinalizers(), f) || c.inUse(k, v) {
		return false
	}
	c.dropFinalizer(k, v, f)
	return true
}

// inUse reports whether a claim is in a Pod that has a Node, or a volume is bound.
func (c *controllers) inUse(k *kind, v *version) bool {
	if k.storage == volumesStorage {
		phase, _, _ := unstructured.NestedString(v.content, "status", "phase")
		return phase == "Bound"
	}
	t := c.store.tables[podsStorage]
	if t == nil {
		return false
	}
	return slices.ContainsFunc(t.sorted(v.namespace), func(pod *version) bool {
		node, _, _ := unstructured.NestedString(pod.content, "spec", "nodeName")
		return node != "" && slices.Contains(claimsOf(pod), v.name)
	})
}

// claimsOf returns the names of the claims that a Pod mounts.
func claimsOf(pod *version) []string {
	spec, _ := pod.content["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	var names []string
	for _, volume := range volumes {
		volume, _ := volume.(map[string]any)
		if claim, ok := volume["persistentVolumeClaim"].(map[string]any); ok {
			name, _ := claim["claimName"].(string)
			names = append(names, name)
		}
		if _, ok := volume["ephemeral"]; ok {
			name, _ := volume["name"].(string)
			names = append(names, pod.name+"-"+name)
		}
	}
	return names
}

// queueClaims queues the claims of a Pod that was removed, if they are being deleted.
func (c *controllers) queueClaims(pod *version) {
	t := c.store.tables[claimsStorage]
	if t == nil {
		return
	}
	for _, name := range claimsOf(pod) {
		if claim := t.objects[key{pod.namespace, name}]; claim != nil && claim.unstructured().GetDeletionTimestamp() != nil {
			c.enqueue(t.kind, claim)
		}
	}
}
