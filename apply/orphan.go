// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// orphaning are the owners that are deleted with --cascade=orphan, which keeps their objects. The
// garbage collector removes the finalizer that says so as soon as it has done its part, which may be
// before the owner is reconciled: so each event of an owner is looked at.
type orphaning struct {
	seen *lru.Cache // of types.UID
	said *lru.Cache // of types.UID
}

func newOrphaning() *orphaning { return &orphaning{lru.New(mostStates), lru.New(mostStates)} }

func (o *orphaning) note(_ schema.GroupKind, _, now client.Object) {
	if now != nil && slices.Contains(now.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		o.seen.Add(now.GetUID(), nil)
	}
}

// watches returns the watch of the owners. The kind of an unstructured owner is not known here: then
// only what is still there in the reconcile counts.
func watchesOfOwners[T client.Object](o *orphaning) []step.Watch {
	owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(client.Object) //nolint:errcheck // it is one
	switch owner.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return nil
	}
	none := func(client.Object, schema.GroupKind) []client.ObjectKey { return nil }
	return []step.Watch{{Object: owner, Named: none, Note: o.note}}
}

// keepsChildren reports whether the owner of a request is deleted with --cascade=orphan, and says it once.
func keepsChildren[T client.Object](o *orphaning, req *step.Request[T]) bool {
	o.note(schema.GroupKind{}, nil, req.Object)
	uid := req.Object.GetUID()
	if _, seen := o.seen.Get(uid); !seen {
		return false
	}
	if _, said := o.said.Get(uid); !said {
		o.said.Add(uid, nil)
		req.Event(corev1.EventTypeNormal, ReasonOrphaned, "Delete", "It is deleted with --cascade=orphan: the objects of its sets stay, and belong to none. An object of its name that wants them takes them over")
	}
	return true
}
