// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// orphaning are the owners that are deleted with --cascade=orphan, which keeps their objects. The
// garbage collector removes the finalizer that says so as soon as it has done its part, which may be
// before the owner is reconciled: so each event of an owner is looked at. While the operator does not
// run, nothing does.
type orphaning struct {
	fed      atomic.Bool
	deleting *lru.Cache // of types.UID: whose deletion an event has shown
	orphans  *lru.Cache // of types.UID
	said     *lru.Cache // of types.UID
}

func newOrphaning() *orphaning {
	return &orphaning{deleting: lru.New(mostStates), orphans: lru.New(mostStates), said: lru.New(mostStates)}
}

func (o *orphaning) note(owner client.Object) {
	if owner.GetDeletionTimestamp().IsZero() {
		return
	}
	o.deleting.Add(owner.GetUID(), nil)
	if slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		o.orphans.Add(owner.GetUID(), nil)
	}
}

// watchesOfOwners returns a watch that sees each event of an owner before it requests a reconcile. The
// kind of an unstructured owner is not known here: then only what the reconcile sees counts.
func watchesOfOwners[T client.Object](o *orphaning) []step.Watch {
	owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(client.Object) //nolint:errcheck // it is one
	switch owner.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return nil
	}
	return []step.Watch{{Object: owner, NamedBy: func(obj client.Object) []client.ObjectKey {
		o.fed.Store(true)
		o.note(obj)
		return nil
	}}}
}

// keepsChildren reports whether the owner of a request is deleted with --cascade=orphan, and says it once.
// The error is a wait for the event of the deletion, which the cache may have before its watchers do.
func keepsChildren[T client.Object](o *orphaning, req *step.Request[T]) (stay bool, wait error) {
	uid := req.Object.GetUID()
	_, seen := o.deleting.Get(uid)
	o.note(req.Object)
	_, orphans := o.orphans.Get(uid)
	switch {
	case !orphans && !seen && o.fed.Load():
		return false, ctrlkit.Poll("the event of the deletion", time.Second) // once: it is noted now
	case !orphans:
		return false, nil
	}
	if _, said := o.said.Get(uid); !said {
		o.said.Add(uid, nil)
		req.Event(corev1.EventTypeNormal, reasonOrphaned, "Delete", "It is deleted with --cascade=orphan: the objects of its sets stay, and belong to none. An object of its name that wants them takes them over")
	}
	return true, nil
}
