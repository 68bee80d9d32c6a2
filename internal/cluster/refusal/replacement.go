// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Replacement is what it takes, and costs, to have an object created again.
type Replacement struct {
	// Loss is what is gone with the object and does not come back, "" if the client that keeps the
	// object makes all of it again: "the data of its volume".
	Loss string
	// Adopts says that the dependents of the object can stay: the new one will select them.
	Adopts bool

	command string
	pods    bool // it has Pods, which go with it
}

// ReplacementOf returns what it takes to replace a live object by what is wanted.
func ReplacementOf(kind schema.GroupKind, key client.ObjectKey, wanted, live map[string]any) Replacement {
	claims, _, _ := unstructured.NestedSlice(live, "spec", "volumeClaimTemplates")
	r := Replacement{Loss: losses[kind], Adopts: workloads[kind] && adopts(kind, wanted, live), pods: workloads[kind]}
	if len(claims) > 0 && kind.Group == "apps" {
		r.Loss = "its claims, if its persistentVolumeClaimRetentionPolicy says so, and until it is there again all of its Pods"
	}
	resource := strings.ToLower(kind.Kind)
	if strings.Contains(kind.Group, ".") {
		resource += "." + kind.Group
	}
	r.command = "kubectl delete " + resource + " " + key.Name
	if key.Namespace != "" {
		r.command += " -n " + key.Namespace
	}
	return r
}

// losses are the kinds of objects that hold what no manifest has.
var losses = map[schema.GroupKind]string{
	{Kind: "PersistentVolumeClaim"}: "the data of its volume",
	{Kind: "PersistentVolume"}:      "the way to its data",
	{Kind: "Namespace"}:             "everything in it",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "all objects of its kind",
}

// workloads are the kinds whose Pods, or ReplicaSets, can be adopted.
var workloads = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "batch", Kind: "Job"}: true,
}

// adopts reports whether a workload will select the Pods that another one has left. A Job does so only
// with a selector that its author wrote: the generated one has its UID.
func adopts(kind schema.GroupKind, wanted, live map[string]any) bool {
	manual, _, _ := unstructured.NestedBool(wanted, "spec", "manualSelector")
	fields, _, _ := unstructured.NestedMap(wanted, "spec", "selector")
	if kind.Group == "batch" && !manual || len(fields) == 0 {
		return false
	}
	var selects metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selects) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&selects)
	left, _, _ := unstructured.NestedStringMap(live, "spec", "template", "metadata", "labels")
	return err == nil && selector.Matches(labels.Set(left))
}

// Remedy says how a person replaces the object, and what that costs.
func (r *Replacement) Remedy() string {
	switch {
	case r.Adopts:
		return "put the field back, or run " + r.command + " --cascade=orphan: it is created again and adopts its Pods, which stay"
	case r.Loss != "":
		return "put the field back: to delete it loses " + r.Loss + "; if you have a copy, or need none, run " + r.command + ": it is created again"
	case r.pods:
		return "put the field back, or run " + r.command + ": its Pods go, which it would not select, and it is created again"
	default:
		return "put the field back, or run " + r.command + ": it is created again"
	}
}
