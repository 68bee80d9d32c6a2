// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/health"
)

// states is what one step knows of the cluster: how objects are, by their health, and which
// kinds have a namespace. It is safe for concurrent use.
type states struct {
	known  *lru.Cache // of types.UID to knownState
	scopes sync.Map   // of schema.GroupVersionKind to bool
	left   *lru.Cache // of types.UID: the objects that are left, and of which that was said
}

// knownState is how an object was in a version.
type knownState struct {
	version       string
	ready, failed bool
	lacks         string
}

// mostStates limits what is kept: a state of an object that does not change need not be computed
// again.
const mostStates = 8192

func newStates() *states { return &states{known: lru.New(mostStates), left: lru.New(mostStates)} }

// isNew reports whether it is to be said that an object is left.
func (s *states) isNew(uid types.UID) bool {
	if _, said := s.left.Get(uid); said {
		return false
	}
	s.left.Add(uid, nil)
	return true
}

// of returns whether an object is ready, whether it has failed for good, and what it lacks.
func (s *states) of(it *item, obj client.Object) (ready, failed bool, lacks string, err error) {
	switch {
	case it.policy.has(NoWait):
		return true, false, "", nil
	case it.policy.ready != nil:
		u, err := unstructuredOf(obj, it.gvk)
		if err != nil {
			return false, false, "", fmt.Errorf("reading %s: %w", it.Ref, err)
		}
		if u == obj {
			u = u.DeepCopy() // it may be that of the cache
		}
		ready, lacks := it.policy.ready(u)
		return ready, false, lacks, nil
	}
	if found, ok := s.known.Get(obj.GetUID()); ok && obj.GetUID() != "" { // a fake client may give none
		if known := found.(knownState); known.version == obj.GetResourceVersion() { //nolint:errcheck // put there below
			return known.ready, known.failed, known.lacks, nil
		}
	}
	computed := health.OfKind(obj, it.gvk)
	known := knownState{
		version: obj.GetResourceVersion(), ready: isReady(computed),
		failed: computed.State == health.StateFailed, lacks: cmp.Or(computed.Message, computed.Reason),
	}
	if computed.Reason != health.ReasonNoStatus { // which costs nothing to find out
		s.known.Add(types.UID(obj.GetUID()), known)
	}
	return known.ready, known.failed, known.lacks, nil
}

// isReady reports whether a set need not wait for an object. A phase that is a word without an
// agreed meaning is no reason to wait, as it is none to kstatus: ReadyWhen can give it one.
func isReady(s health.Health) bool {
	return s.State == health.StateReady || s.Reason == health.ReasonUnknownPhase
}

// unstructuredOf returns an object, with the apiVersion and kind that typed objects of a cache do
// not have.
func unstructuredOf(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
