// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Seen is a cause, and the version of the object that it is about.
type Seen struct {
	cause   journal.Cause
	version string
}

// A Recorder records the causes of reconciles since the one before. They are kept beside the queue,
// which only knows names.
type Recorder struct {
	Controller string
	Kind       schema.GroupKind
	Client     client.Client
	Observer   journal.Observer // without one nothing is recorded
	// Namespaced reports whether the reconciled objects have a namespace. It asks what the cluster
	// serves, once.
	Namespaced func() bool

	mu      sync.Mutex // for pending
	pending map[types.NamespacedName][]Seen
	most    int // how many objects pending has had
}

// mostPending is how many causes of one reconcile are kept apart. More are only counted.
const mostPending = 32

// mostKept is the size of a map that is kept when it is empty. A map does not shrink, and all objects
// are pending when the operator starts.
const mostKept = 64

// Take returns the causes of the reconcile that begins.
func (r *Recorder) Take(key types.NamespacedName) []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.pending[key]
	delete(r.pending, key)
	if len(r.pending) == 0 && r.most > mostKept {
		r.pending, r.most = nil, 0
	}
	return all
}

// Own records an event of a reconciled object. Kind is empty for a change.
func (r *Recorder) Own(obj client.Object, kind journal.CauseKind, verb string) {
	if r.Observer == nil {
		return
	}
	cause := journal.Cause{Kind: cmp.Or(kind, journal.CauseOwnChange), Verb: verb}
	r.record(client.ObjectKeyFromObject(obj), Seen{cause, obj.GetResourceVersion()})
}

// Child records an event of another object, as a cause of those that own it. Kind is empty for a
// change.
func (r *Recorder) Child(obj client.Object, kind journal.CauseKind, verb string) {
	if r.Observer == nil {
		return
	}
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == r.Kind.Kind && track.GroupOf(owner.APIVersion) == r.Kind.Group {
			key := types.NamespacedName{Name: owner.Name}
			if r.Namespaced() {
				key.Namespace = obj.GetNamespace()
			}
			cause := journal.Cause{Kind: cmp.Or(kind, journal.CauseChildChange), Verb: verb, Object: r.name(obj)}
			r.record(key, Seen{cause, ""})
		}
	}
}

func (r *Recorder) name(obj client.Object) journal.Object {
	gvk, err := r.Client.GroupVersionKindFor(obj)
	if err != nil {
		gvk = obj.GetObjectKind().GroupVersionKind()
	}
	return journal.ObjectOf(gvk.GroupKind(), client.ObjectKeyFromObject(obj))
}

// record keeps a cause for the next reconcile, and notifies the observers.
func (r *Recorder) record(key types.NamespacedName, s Seen) {
	r.add(key, s)
	if s.cause.Kind == journal.CauseStart {
		return // there is one for every object when the operator starts
	}
	s.cause.Times = 1
	r.Observer.Observe(context.Background(), journal.Entry{
		Time: time.Now(), Controller: r.Controller, Object: journal.ObjectOf(r.Kind, key), Event: journal.Triggered{Cause: s.cause},
	})
}

func (r *Recorder) add(key types.NamespacedName, s Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.pending[key]
	if i := slices.IndexFunc(all, func(o Seen) bool {
		return o.cause.Object == s.cause.Object && o.cause.Verb == s.cause.Verb && o.cause.Kind == s.cause.Kind
	}); i >= 0 {
		all[i].cause.Times++
		all[i].version = s.version
		return
	}
	s.cause.Times = 1
	if len(all) >= mostPending {
		all[len(all)-1].cause.Times++
		return
	}
	if r.pending == nil {
		r.pending = make(map[types.NamespacedName][]Seen)
	}
	r.pending[key] = append(all, s)
	r.most = max(r.most, len(r.pending))
}
