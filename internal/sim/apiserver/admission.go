// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// admitNew does what admission plugins that are on by default do with new objects: it sets the
// priority of Pods and the StorageClass of claims.
func (g *registry) admitNew(k *kind, obj *unstructured.Unstructured) *failure {
	switch k.storage {
	case podsStorage:
		return g.prioritize(obj)
	case claimsStorage:
		g.chooseStorageClass(obj)
	}
	return nil
}

var (
	priorityClassesStorage = schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}
	storageClassesStorage  = schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}
)

// systemPriorities are the PriorityClasses that every cluster has.
var systemPriorities = map[string]int64{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}

// prioritize sets the priority of a Pod by its PriorityClass, or by the global default.
func (g *registry) prioritize(pod *unstructured.Unstructured) *failure {
	spec, ok := pod.Object["spec"].(map[string]any)
	if !ok {
		return nil
	}
	name, _ := spec["priorityClassName"].(string)
	value, known := systemPriorities[name]
	policy := "PreemptLowerPriority"
	if t := g.store.tables[priorityClassesStorage]; t != nil && !known {
		for _, v := range t.sorted("") {
			if global, _ := v.content["globalDefault"].(bool); v.name != name && (name != "" || !global) {
				continue
			}
			known = true
			spec["priorityClassName"] = v.name
			value, _, _ = unstructured.NestedInt64(v.content, "value")
			text, _, _ := unstructured.NestedString(v.content, "preemptionPolicy")
			policy = cmp.Or(text, policy)
			break
		}
	}
	switch {
	case known:
		spec["priority"], spec["preemptionPolicy"] = value, policy
	case name != "":
		return fail(apierrors.NewForbidden(podsStorage, pod.GetName(), fmt.Errorf("no PriorityClass with name %s was found", name)))
	}
	return nil
}

// chooseStorageClass sets the default StorageClass of a claim that names none: as upstream, the
// newest one that is marked as default.
func (g *registry) chooseStorageClass(claim *unstructured.Unstructured) {
	t := g.store.tables[storageClassesStorage]
	spec, ok := claim.Object["spec"].(map[string]any)
	if t == nil || !ok || spec["storageClassName"] != nil || claim.GetAnnotations()["volume.beta.kubernetes.io/storage-class"] != "" {
		return
	}
	var chosen *version
	for _, v := range t.sorted("") {
		if v.unstructured().GetAnnotations()["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		if chosen == nil || v.unstructured().GetCreationTimestamp().After(chosen.unstructured().GetCreationTimestamp().Time) {
			chosen = v
		}
	}
	if chosen != nil {
		spec["storageClassName"] = chosen.name
	}
}

// immortal are the Namespaces that the real server does not delete.
var immortal = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// checkDeletion refuses the deletion of a Namespace that every cluster has.
func checkDeletion(k *kind, name string) *failure {
	if k.storage != namespacesStorage || !slices.Contains(immortal, name) {
		return nil
	}
	return fail(apierrors.NewForbidden(namespacesStorage, name, fmt.Errorf("this namespace may not be deleted")))
}
