// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

func (g *registry) delete(k *kind, r *Request) *Response {
	options, failure := deleteOptions(r)
	if failure != nil {
		return failure.response()
	}
	v := g.store.table(k).objects[key{r.Namespace, r.Name}]
	if v == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	if failure := checkDeletion(k, r.Name); failure != nil {
		return failure.response()
	}
	w := &writeContext{request: r, kind: k}
	return g.deleteObject(w, v, options)
}

// deleteObject removes an object, or marks it as being deleted if finalizers, a grace period or a
// namespace's content hold it.
func (g *registry) deleteObject(w *writeContext, v *version, options *metav1.DeleteOptions) *Response {
	k, r := w.kind, w.request
	if failure := checkPreconditions(k, v, options.Preconditions); failure != nil {
		return failure.response()
	}
	for _, mutating := range []bool{true, false} {
		if failure := w.decide(g, nil, v.unstructured(), mutating); failure != nil {
			return failure.response()
		}
	}
	finalizers, changed := finalizersFor(k, v, options)
	grace := gracePeriod(k, v, options)
	obj := v.unstructured()
	marked := obj.GetDeletionTimestamp() != nil
	if k.storage == definitionsStorage && !marked && !slices.Contains(finalizers, cleanupFinalizer) {
		finalizers = append(finalizers, cleanupFinalizer) // as upstream: its objects go first
	}
	sooner := marked && obj.GetDeletionGracePeriodSeconds() != nil && grace < *obj.GetDeletionGracePeriodSeconds()
	u := obj.DeepCopy()
	u.SetFinalizers(finalizers)
	if !marked || sooner {
		when := metav1.NewTime(g.now().Add(time.Duration(grace) * time.Second))
		u.SetDeletionTimestamp(&when)
		u.SetDeletionGracePeriodSeconds(&grace)
	}
	if !marked && u.GetGeneration() > 0 {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	if len(finalizers) == 0 && grace == 0 && !isFullNamespace(k, obj) {
		if k.storage != podsStorage || marked && !sooner {
			u = nil
		}
		return g.removeObject(w, v, u)
	}
	if marked && !changed && !sooner {
		return w.respond(http.StatusOK, v)
	}
	if k.gvr.Resource == "namespaces" && k.gvr.Group == "" {
		builtin.Terminate(u.Object)
	}
	if r.DryRun {
		return w.respond(http.StatusOK, dry(u))
	}
	return w.respond(http.StatusOK, g.store.put(w, v, u.Object))
}

// removeObject removes an object. As upstream, a Pod is marked first, also if nothing holds it.
func (g *registry) removeObject(w *writeContext, v *version, marked *unstructured.Unstructured) *Response {
	switch {
	case !w.request.DryRun:
		if marked != nil {
			v = g.store.put(w, v, marked.Object)
		}
		v = g.store.remove(w, v)
		g.catalog.forget(g.store, w.kind, v)
	case marked != nil:
		v = dry(marked)
	}
	if w.kind.definition == nil && builtin.ReturnsDeleted(w.kind.gvk) {
		return w.respond(http.StatusOK, v)
	}
	return deleted(w.kind, v)
}

// isFullNamespace reports whether an object is a Namespace that has not been emptied.
func isFullNamespace(k *kind, obj *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "finalizers")
	return k.storage == namespacesStorage && len(finalizers) > 0
}

func checkPreconditions(k *kind, v *version, p *metav1.Preconditions) *failure {
	refuse := func(format, precondition, record, what string) *failure {
		return fail(apierrors.NewConflict(schema.GroupResource{Group: k.gvk.Group, Resource: k.gvk.Kind}, v.name,
			fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", format, precondition, format, record, what)))
	}
	version := v.unstructured().GetResourceVersion()
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != v.uid:
		return refuse("UID", string(*p.UID), string(v.uid), "deleted and then recreated")
	case p.ResourceVersion != nil && *p.ResourceVersion != version:
		return refuse("ResourceVersion", *p.ResourceVersion, version, "modified")
	}
	return nil
}

// deleted is the answer to a deletion that removed the object.
func deleted(k *kind, v *version) *Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: v.name, Group: k.gvr.Group, Kind: k.gvr.Resource, UID: v.uid},
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // plain fields
	}
	return respond(http.StatusOK, append(body, '\n'))
}

func (g *registry) deleteCollection(k *kind, r *Request) *Response {
	options, failure := deleteOptions(r)
	if failure != nil {
		return failure.response()
	}
	sel, failure := newSelection(k, r)
	if failure != nil {
		return failure.response()
	}
	var items []*version
	for _, v := range g.store.table(k).sorted(r.Namespace) {
		if sel.matches(k, v) {
			items = append(items, v)
		}
	}
	items = append([]*version(nil), items...)
	for _, v := range items {
		single := *r
		single.Name, single.Namespace = v.name, v.namespace
		g.deleteObject(&writeContext{request: &single, kind: k}, v, options)
	}
	return respond(http.StatusOK, encodeList(k, items, g.store.revision, "", 0))
}

// finalizersFor returns the finalizers of an object after a request for its deletion, and whether
// they differ from those before. As upstream, the propagation policies Orphan and Foreground are
// finalizers of the garbage collector.
func finalizersFor(k *kind, v *version, o *metav1.DeleteOptions) (finalizers []string, changed bool) {
	before := v.unstructured().GetFinalizers()
	finalizers = slices.DeleteFunc(slices.Clone(before), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	has := func(f string) bool { return slices.Contains(before, f) }
	orphan, foreground := has(metav1.FinalizerOrphanDependents), has(metav1.FinalizerDeleteDependents)
	switch {
	//lint:ignore SA1019 old clients still send it
	case o.OrphanDependents != nil:
		//lint:ignore SA1019 old clients still send it
		orphan, foreground = *o.OrphanDependents, false
	case o.PropagationPolicy != nil:
		orphan = *o.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *o.PropagationPolicy == metav1.DeletePropagationForeground
	case !orphan && !foreground && k.definition == nil && builtin.OrphansByDefault(k.gvk):
		orphan = true
	}
	if orphan {
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	return finalizers, !slices.Equal(before, finalizers)
}

// gracePeriod returns how many seconds an object stays after a request for its deletion. Only Pods
// on a Node have one: their kubelet removes them when their processes have ended.
func gracePeriod(k *kind, v *version, o *metav1.DeleteOptions) int64 {
	if k.gvr.Resource != "pods" || k.gvr.Group != "" {
		return 0
	}
	var asked *int64
	if o.GracePeriodSeconds != nil {
		asked = new(*o.GracePeriodSeconds)
		if *asked < 0 {
			*asked = 1
		}
	}
	if u := v.unstructured(); u.GetDeletionTimestamp() != nil {
		last := u.GetDeletionGracePeriodSeconds()
		switch {
		case last == nil:
			return 0
		case asked == nil:
			return *last
		}
		return min(*last, *asked) // it can only be shortened
	}
	node, _, _ := unstructured.NestedString(v.content, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(v.content, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if asked != nil {
		return *asked
	}
	seconds, _, _ := unstructured.NestedInt64(v.content, "spec", "terminationGracePeriodSeconds")
	return seconds
}

// goesWithoutFinalizers reports whether an object that is being deleted is removed once its last
// finalizer is.
func goesWithoutFinalizers(k *kind, obj *unstructured.Unstructured) bool {
	if k.gvr.Resource == "namespaces" && k.gvr.Group == "" {
		finalizers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "finalizers")
		return len(finalizers) == 0
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
