// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"crypto/sha256"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An echo is what the event shows of the write of a status by which a reconcile ends that has
// failed. Such an event requests no reconcile: of failures that alternate, each write says another
// reason, and its event would have the steps run again at once, without any backoff. The same holds
// for the write of a wait between two failures, if it has a time.
type echo struct {
	status  [sha256.Size]byte // as it was sent
	version string            // after the write; empty as long as the API server has not answered
}

// echoOf returns the echo of a write of the status of obj, before it is sent: its event may come
// before its answer.
func echoOf(obj client.Object) *echo { return &echo{status: hashOfStatus(obj)} }

func hashOfStatus(obj client.Object) [sha256.Size]byte {
	tree, _ := treeOf(obj) //nolint:errcheck // what can't be encoded can't be written
	return sha256.Sum256(mustJSON(tree["status"]))
}

// shows reports whether the event of a change shows nothing but the write: neither another field
// nor, in the status, what another client has written.
func (e *echo) shows(before, now client.Object) bool {
	if before.GetUID() != now.GetUID() || before.GetResourceVersion() == now.GetResourceVersion() { // it repeats what the cache has
		return false
	}
	if now.GetResourceVersion() != e.version && hashOfStatus(now) != e.status {
		return false
	}
	rest := now.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	copyStatus(rest, before)
	rest.SetResourceVersion(before.GetResourceVersion())
	rest.SetManagedFields(before.GetManagedFields())
	return equality.Semantic.DeepEqual(before, rest)
}

// echoes reports whether an event shows nothing but the write of the status by which the last
// reconcile of its object has ended, which has failed and is tried again after its backoff.
func (f eventFilter[T]) echoes(before, now client.Object) bool {
	if _, own := f.engine.resource.is(now); !own || !f.alone || reflect.TypeOf(before) != reflect.TypeOf(now) {
		return false
	}
	e := f.engine.memories.echoOf(client.ObjectKeyFromObject(now))
	return e != nil && e.shows(before, now)
}

// isAlone reports whether one watch alone reports a kind, of those that a builder has: then an
// event that requests no reconcile of its own object requests none at all.
func isAlone(kind schema.GroupKind, kinds, owned []schema.GroupKind) bool {
	n := 0
	for _, k := range kinds {
		if k == kind {
			n++
		}
	}
	return n == 1 && !slices.Contains(owned, kind)
}
