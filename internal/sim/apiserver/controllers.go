// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// controllers are those without which an API server would not behave as a cluster does: the garbage
// collector, the controllers of Namespaces and CustomResourceDefinitions, and those that protect
// claims and volumes in use. Each change queues the objects that they may have to act on;
// Server.Work handles them one at a time, in that order.
type controllers struct {
	registry *registry
	store    *store
	catalog  *catalog
	queue    []workItem
	absent   map[types.UID]bool // objects that were removed and had dependents
}

// workItem is an object that a controller may have to act on.
type workItem struct {
	storage schema.GroupResource
	key     key
	uid     types.UID
}

// Work does one piece of background work, and reports whether there was one.
func (s *Server) Work() bool {
	s.mu.Lock()
	defer s.unlock()
	for len(s.controllers.queue) > 0 {
		item := s.controllers.queue[0]
		s.controllers.queue = s.controllers.queue[1:]
		t, ok := s.store.tables[item.storage]
		if !ok {
			continue
		}
		v := t.objects[item.key]
		if v == nil || v.uid != item.uid {
			continue
		}
		if s.controllers.attend(t.kind, v) {
			return true
		}
	}
	return false
}

// Pending reports whether objects are queued for background work.
func (s *Server) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.controllers.queue) > 0
}

func (c *controllers) enqueue(k *kind, v *version) {
	item := workItem{k.storage, key{v.namespace, v.name}, v.uid}
	if !slices.Contains(c.queue, item) {
		c.queue = append(c.queue, item)
	}
}

// queueFor queues the objects that a change concerns.
func (c *controllers) queueFor(e event) {
	if v := e.new; v != nil {
		u := v.unstructured()
		if len(u.GetOwnerReferences()) > 0 || u.GetDeletionTimestamp() != nil {
			c.enqueue(e.kind, v)
		}
		return
	}
	if e.kind.storage == podsStorage {
		c.queueClaims(e.old)
	}
	// The object was removed: queue its dependents, its owners, and its namespace and definition if
	// these are being deleted.
	for _, d := range c.store.dependents(e.old.uid) {
		c.absent[e.old.uid] = true
		c.enqueue(d.kind, d.version)
	}
	for _, ref := range e.old.unstructured().GetOwnerReferences() {
		if k, owner := c.store.byUID(ref.UID); owner != nil {
			c.enqueue(k, owner)
		}
	}
	if e.old.namespace != "" {
		if t := c.store.tables[namespacesStorage]; t != nil {
			if ns := t.objects[key{name: e.old.namespace}]; ns != nil && ns.unstructured().GetDeletionTimestamp() != nil {
				c.enqueue(t.kind, ns)
			}
		}
	}
	if t := c.store.tables[definitionsStorage]; t != nil {
		if d := t.objects[key{name: e.kind.storage.String()}]; d != nil && d.unstructured().GetDeletionTimestamp() != nil {
			c.enqueue(t.kind, d)
		}
	}
}

// attend does what an object needs, and reports whether it changed anything.
func (c *controllers) attend(k *kind, v *version) bool {
	u := v.unstructured()
	if u.GetDeletionTimestamp() != nil {
		switch {
		case k.gvr.Resource == "namespaces" && k.gvr.Group == "":
			return c.emptyNamespace(k, v)
		case k.storage == definitionsStorage:
			return c.emptyDefinition(k, v)
		case c.unprotect(k, v):
			return true
		case slices.Contains(u.GetFinalizers(), metav1.FinalizerOrphanDependents):
			return c.orphanDependents(k, v)
		case slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents):
			return c.deleteDependents(k, v)
		}
		return false
	}
	return c.collect(k, v)
}

// collect deletes an object whose owners are all gone. If some owners remain, it removes the
// references to the others. It imitates attemptToDeleteItem of
// k8s.io/kubernetes/pkg/controller/garbagecollector.
func (c *controllers) collect(k *kind, v *version) bool {
	owners := v.unstructured().GetOwnerReferences()
	if len(owners) == 0 {
		return false
	}
	var solid, waiting []metav1.OwnerReference
	dangling := 0
	for _, ref := range owners {
		switch state := c.ownerState(v, ref); state {
		case ownerGone:
			dangling++
		case ownerWaits:
			waiting = append(waiting, ref)
		default:
			solid = append(solid, ref)
		}
	}
	switch {
	case len(solid) > 0 && dangling+len(waiting) > 0:
		u := v.unstructured().DeepCopy()
		u.SetOwnerReferences(solid)
		c.putBackground(k, v, u)
		return true
	case len(solid) > 0:
		return false
	case len(waiting) > 0:
		policy := metav1.DeletePropagationForeground
		if len(c.store.dependents(v.uid)) == 0 {
			policy = metav1.DeletePropagationBackground
		}
		c.deleteBackground(k, v, policy)
		return true
	}
	policy := metav1.DeletePropagationBackground
	for _, f := range v.unstructured().GetFinalizers() {
		switch f {
		case metav1.FinalizerOrphanDependents:
			policy = metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			policy = metav1.DeletePropagationForeground
		}
	}
	c.deleteBackground(k, v, policy)
	return true
}

// ownerState returns the state of an owner. As upstream, an owner in another namespace counts as
// gone.
type ownerState int

const (
	ownerThere ownerState = iota
	ownerGone
	ownerWaits // it is being deleted in the foreground and waits for its dependents
)

// ownerState says what has become of an owner. An owner in another namespace is as good as gone, as
// in the real server.
func (c *controllers) ownerState(v *version, ref metav1.OwnerReference) ownerState {
	if c.absent[ref.UID] { // also if its kind is gone, too
		return ownerGone
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return ownerThere
	}
	k, ok := c.catalog.byKind(gv.WithKind(ref.Kind))
	if !ok {
		return ownerThere // its kind may be installed later
	}
	namespace := v.namespace
	if !k.namespaced {
		namespace = ""
	} else if namespace == "" {
		return ownerThere // an invalid reference of a cluster-scoped object, which the real collector ignores
	}
	owner := c.store.table(k).objects[key{namespace, ref.Name}]
	switch {
	case owner == nil || owner.uid != ref.UID:
		return ownerGone
	case owner.unstructured().GetDeletionTimestamp() != nil && slices.Contains(owner.unstructured().GetFinalizers(), metav1.FinalizerDeleteDependents) &&
		ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion:
		return ownerWaits
	}
	return ownerThere
}

// orphanDependents removes the references to an object from its dependents, and then the finalizer
// that holds the object.
func (c *controllers) orphanDependents(k *kind, v *version) bool {
	for _, d := range c.store.dependents(v.uid) {
		u := d.version.unstructured().DeepCopy()
		u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == v.uid }))
		c.putBackground(d.kind, d.version, u)
	}
	c.dropFinalizer(k, v, metav1.FinalizerOrphanDependents)
	return true
}

// deleteDependents deletes the dependents of an object. When those that block its deletion are
// gone, it removes the finalizer that holds the object.
func (c *controllers) deleteDependents(k *kind, v *version) bool {
	blocked, acted := false, false
	for _, d := range c.store.dependents(v.uid) {
		for _, ref := range d.version.unstructured().GetOwnerReferences() {
			if ref.UID == v.uid && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
				blocked = true
			}
		}
		if d.version.unstructured().GetDeletionTimestamp() == nil && c.collect(d.kind, d.version) {
			acted = true
		}
	}
	if blocked && len(c.store.dependents(v.uid)) > 0 {
		return acted
	}
	current := c.store.table(k).objects[key{v.namespace, v.name}]
	if current != nil && current.uid == v.uid {
		c.dropFinalizer(k, current, metav1.FinalizerDeleteDependents)
	}
	return true
}

func (c *controllers) dropFinalizer(k *kind, v *version, finalizer string) {
	u := v.unstructured().DeepCopy()
	u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f == finalizer }))
	c.putBackground(k, v, u)
}

// background returns the write context of the cluster's own controllers.
func background(k *kind, v *version, verb string) *writeContext {
	return &writeContext{kind: k, request: &Request{
		Method: http.MethodPatch, Verb: verb, Actor: "server", UserAgent: "kube-controller-manager", Resource: k.gvr, Namespace: v.namespace, Name: v.name,
	}}
}

func (c *controllers) putBackground(k *kind, v *version, u *unstructured.Unstructured) {
	_, failure := c.registry.updateObject(background(k, v, "patch"), v, u, false)
	if failure != nil {
		return // the object has changed in the meantime, and that change has queued it again
	}
}

func (c *controllers) deleteBackground(k *kind, v *version, policy metav1.DeletionPropagation) {
	uid := v.uid
	c.registry.deleteObject(background(k, v, "delete"), v, &metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
	})
}

// emptyNamespace deletes the objects of a Namespace that is being deleted, and then the Namespace.
func (c *controllers) emptyNamespace(k *kind, v *version) bool {
	acted, remaining := false, false
	for _, t := range c.store.sortedTables() {
		for _, o := range slices.Clone(t.sorted(v.name)) {
			remaining = true
			if o.unstructured().GetDeletionTimestamp() == nil {
				c.deleteBackground(t.kind, o, metav1.DeletePropagationBackground)
				acted = true
			}
		}
	}
	if remaining {
		if acted {
			c.enqueue(k, v)
		}
		return acted
	}
	u := v.unstructured().DeepCopy()
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		delete(spec, "finalizers")
	}
	if len(u.GetFinalizers()) == 0 {
		c.store.remove(background(k, v, "delete"), v)
		return true
	}
	return false
}
