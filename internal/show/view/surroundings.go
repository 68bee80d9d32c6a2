// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owned are the kinds that operators create most often, and what those create.
var owned = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "batch", Version: "v1", Kind: "Job"},
	{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "PersistentVolumeClaim"}, {Version: "v1", Kind: "ServiceAccount"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

// Limits of what surrounds an object.
const (
	mostListed   = 500 // of a list of the API server
	mostEvents   = 30  // of an object
	fewEvents    = 2   // of an object below another one
	mostChildren = 4   // levels: of a CronJob, of a Job, and of a Pod there is nothing below
)

// A found object is one of those in a namespace.
type found struct {
	object *unstructured.Unstructured
	kind   schema.GroupVersionKind
}

// Children implements [Details]: the objects in the namespace of an owner that name it, of common
// kinds and of those of the page, and those that name these.
func (c *Cluster) Children(ctx context.Context, owner *unstructured.Unstructured) []Child {
	if owner.GetNamespace() == "" {
		return nil
	}
	kinds := slices.Clone(owned)
	for _, kind := range c.Kinds() {
		if mapping, err := c.client.RESTMapper().RESTMapping(kind); err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			kinds = append(kinds, mapping.GroupVersionKind)
		}
	}
	byOwner := map[types.UID][]found{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if c.client.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.Limit(mostListed)) != nil {
			continue // not allowed, or not served
		}
		for i := range list.Items {
			if isRetired(&list.Items[i]) {
				continue
			}
			for _, ref := range list.Items[i].GetOwnerReferences() {
				byOwner[ref.UID] = append(byOwner[ref.UID], found{&list.Items[i], kind})
			}
		}
	}
	var events []corev1.Event
	if len(byOwner[owner.GetUID()]) > 0 {
		events = c.events(ctx, owner.GetNamespace())
	}
	return childrenIn(byOwner, events, owner.GetUID(), mostChildren)
}

// isRetired reports whether an object is the ReplicaSet of an earlier revision, which has no Pods.
func isRetired(obj *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas") //nolint:errcheck // another type is none
	has, _, _ := unstructured.NestedInt64(obj.Object, "status", "replicas")  //nolint:errcheck // another type is none
	return obj.GetKind() == "ReplicaSet" && wanted == 0 && has == 0
}

// childrenIn returns what an owner has, so many levels of it, with the warnings about what is not ready.
func childrenIn(byOwner map[types.UID][]found, events []corev1.Event, owner types.UID, levels int) []Child {
	if levels == 0 {
		return nil
	}
	var all []Child
	for _, f := range byOwner[owner] {
		r := rowOf(f.object, f.kind, lastRun{}, false)
		child := Child{Object: r.object, State: r.state, Within: childrenIn(byOwner, events, f.object.GetUID(), levels-1)}
		if r.state != Ready {
			child.Text = strings.Trim(r.reason+": "+r.message, ": ")
			warnings := slices.DeleteFunc(eventsAbout(events, f.object.GetUID()), func(e Event) bool { return !e.Warning })
			child.Events = warnings[:min(len(warnings), fewEvents)]
		}
		all = append(all, child)
	}
	return all
}

// Events implements [Details].
func (c *Cluster) Events(ctx context.Context, of *unstructured.Unstructured) []Event {
	all := eventsAbout(c.events(ctx, cmp.Or(of.GetNamespace(), metav1.NamespaceDefault), client.MatchingFields{"involvedObject.uid": string(of.GetUID())}), of.GetUID())
	return all[:min(len(all), mostEvents)]
}

// events returns events of a namespace, none if they can't be read.
func (c *Cluster) events(ctx context.Context, namespace string, options ...client.ListOption) []corev1.Event {
	var list corev1.EventList
	if c.client.List(ctx, &list, append(options, client.InNamespace(namespace), client.Limit(mostListed))...) != nil {
		return nil
	}
	return list.Items
}

// eventsAbout returns those about an object, the latest first.
func eventsAbout(events []corev1.Event, of types.UID) []Event {
	var all []Event
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID != of { // of another one, or of a server without this selector
			continue
		}
		at := latest(latest(e.LastTimestamp.Time, e.EventTime.Time), e.CreationTimestamp.Time)
		count := int(e.Count)
		if e.Series != nil {
			at, count = latest(at, e.Series.LastObservedTime.Time), int(e.Series.Count)
		}
		all = append(all, Event{At: at, Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Text: e.Message, Count: max(count, 1)})
	}
	slices.SortFunc(all, func(a, b Event) int { return b.At.Compare(a.At) })
	return all
}
