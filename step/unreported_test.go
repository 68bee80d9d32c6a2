// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A watched world has an engine whose step reads a Secret, one that is not there, a Node, the
// ServiceAccounts of its namespace, and a Service. The test delivers the events of its watches.
type watched struct {
	*world
	events predicate.Predicate
	runs   int
	after  time.Duration // the step requests it
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1"}
}

// arranged are the objects that are there beside the Thing, the Service last.
func arranged() []client.Object {
	return []client.Object{
		&corev1.Secret{ObjectMeta: named("a")}, &corev1.ServiceAccount{ObjectMeta: named("a")},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, &corev1.Service{ObjectMeta: named("a")},
	}
}

// newWatched returns a world whose engine has found its object unchanged once, without a read.
func newWatched(t *testing.T) *watched {
	t.Helper()
	h := &watched{world: newWorld(t, append(arranged(), newThing())...)}
	h.start(true, arranged()...)
	h.must() // writes the conditions
	h.must() // runs the step
	h.reads, h.runs = nil, 0
	h.idle("after two reconciles")
	return h
}

// start makes the engine, as a process that begins does, whose watches list these objects. Unless it
// is wired it may miss events.
func (h *watched) start(wired bool, listed ...client.Object) {
	h.tb.Helper()
	options := h.options()
	options.SkipUnchanged = true
	e := h.engineWith(options, doing("Read", h.do))
	if wired {
		_, err := e.Wire()
		must(h.tb, err)
	}
	h.events = e.EventFilter()
	for _, obj := range append(listed, h.thing()) {
		h.events.Create(event.CreateEvent{Object: obj, IsInInitialList: true})
	}
}

func (h *watched) do(ctx context.Context, req *request) error {
	h.runs++
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }
	for name, obj := range map[string]client.Object{"a": &corev1.Secret{}, "absent": &corev1.Secret{}, "n": &corev1.Node{}} {
		if err := req.Client.Get(ctx, key(name), obj); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if err := req.Client.Get(ctx, key("a"), &corev1.Service{}); err != nil {
		return err
	}
	if err := req.Client.List(ctx, &corev1.ServiceAccountList{}, client.InNamespace("default")); err != nil {
		return err
	}
	if h.after > 0 {
		return ctrlkit.RequeueWithin(h.after)
	}
	return nil
}

// idle checks that a reconcile reads nothing.
func (h *watched) idle(when string) {
	h.tb.Helper()
	h.reads = nil
	h.must()
	none(h.tb, "reads "+when, h.reads)
	h.ended(journal.ResultConverged)
}

// touch changes an object, and returns its state before and after.
func (h *watched) touch(obj client.Object) event.UpdateEvent {
	h.tb.Helper()
	must(h.tb, h.server.Get(context.Background(), client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	obj.SetLabels(map[string]string{"changed": "yes"})
	must(h.tb, h.server.Update(context.Background(), obj))
	return event.UpdateEvent{ObjectOld: before, ObjectNew: obj}
}

func (h *watched) creation(obj client.Object) event.CreateEvent {
	h.create(obj)
	return event.CreateEvent{Object: obj}
}

func (h *watched) deletion(obj client.Object) event.DeleteEvent {
	h.remove(obj)
	return event.DeleteEvent{Object: obj}
}

// What the watches of a controller report decides whether an idle object is read, and what is read
// decides whether its steps run.
func TestSkipUnreported(t *testing.T) {
	secret := func(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: named(name)} }
	unchanged := func(obj client.Object) event.UpdateEvent { return event.UpdateEvent{ObjectOld: obj, ObjectNew: obj} }
	tests := []struct {
		name        string
		happen      func(h *watched)
		reads, runs bool
	}{
		{"nothing", func(*watched) {}, false, false},
		{"an input changes", func(h *watched) { h.events.Update(h.touch(secret("a"))) }, true, true},
		{"an input is gone", func(h *watched) { h.events.Delete(h.deletion(secret("a"))) }, true, true},
		{"an absent one comes", func(h *watched) { h.events.Create(h.creation(secret("absent"))) }, true, true},
		{"an object of a list comes", func(h *watched) { h.events.Create(h.creation(&corev1.ServiceAccount{ObjectMeta: named("b")})) }, true, true},
		{"an input without a namespace changes", func(h *watched) {
			h.events.Update(h.touch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
		}, true, true},
		{"the object changes", func(h *watched) { h.events.Update(h.touch(newThing())) }, true, true},
		{"the object is gone", func(h *watched) { h.events.Delete(h.deletion(newThing())) }, true, false},
		{"another object changes", func(h *watched) { h.events.Create(h.creation(secret("other"))) }, false, false},
		{"an event that changes nothing", func(h *watched) { h.events.Generic(event.GenericEvent{Object: secret("a")}) }, true, false},
		{"a resync", func(h *watched) {
			a, own := secret("a"), newThing()
			a.ResourceVersion, own.ResourceVersion = "1", "2"
			h.events.Update(unchanged(a))
			h.events.Update(unchanged(own))
		}, false, false},
		{"another object of the same name and version", func(h *watched) {
			a, b := secret("a"), secret("a")
			a.ResourceVersion, b.ResourceVersion, b.UID = "1", "1", "uid-2"
			h.events.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b})
		}, true, false},
		{"only metadata is watched", func(h *watched) {
			h.touch(secret("a"))
			h.events.Generic(event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: named("a")}})
		}, false, false},
		{"a change that no event has reported yet", func(h *watched) { h.touch(secret("a")) }, false, false},
		{"an hour", func(*watched) { pass(time.Hour) }, true, true},
		{"a restart", func(h *watched) { h.start(true, arranged()...) }, true, true},
	}
	for _, test := range tests {
		runInBubble(t, test.name, func(t *testing.T) {
			h := newWatched(t)
			test.happen(h)
			h.reads, h.runs = nil, 0
			h.must()
			same(t, "reads", test.reads, len(h.reads) > 0)
			same(t, "runs", test.runs, h.runs > 0)
			if h.thing() == nil {
				return
			}
			if test.runs { // and the object becomes idle again
				h.must()
			}
			h.idle("of an object that is idle again")
		})
	}
}

// A change that comes while the inputs are compared, or while the steps run, is compared by the next
// reconcile.
func TestAChangeDuringAReconcile(t *testing.T) {
	changes := func(h *watched) func(string) {
		return func(read string) {
			if read == "Secret a" { // it was just read as it was before
				h.onRead = nil
				h.events.Update(h.touch(&corev1.Secret{ObjectMeta: named("a")}))
			}
		}
	}
	t.Run("while it compares", func(t *testing.T) {
		h := newWatched(t)
		h.events.Generic(event.GenericEvent{Object: &corev1.Secret{ObjectMeta: named("a")}}) // so that it compares
		h.onRead = func(read string) {
			same(t, "the first read", "Thing a", read)
			h.onRead = changes(h)
		}
		h.must()
		same(t, "runs before the change", 0, h.runs)
		h.must()
		same(t, "runs", 1, h.runs)
	})
	t.Run("while the step runs", func(t *testing.T) {
		h := newWatched(t)
		h.events.Update(h.touch(newThing()))
		h.onRead = func(read string) {
			if h.runs > 0 {
				changes(h)(read)
			}
		}
		h.must()
		if h.onRead != nil {
			t.Fatal("nothing has changed meanwhile")
		}
		h.must()
		same(t, "runs", 2, h.runs)
	})
}

// An input of a type that no watch reports is compared each time, and so is all that an engine has
// read whose filter may miss events.
func TestInputsThatAreNotWatched(t *testing.T) {
	for name, test := range map[string]struct {
		wired   bool
		listed  []client.Object
		changes client.Object
	}{
		"a type that is not watched":     {true, arranged()[:3], &corev1.Service{ObjectMeta: named("a")}},
		"an engine that may miss events": {false, arranged(), &corev1.Secret{ObjectMeta: named("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newWatched(t)
			h.start(test.wired, test.listed...)
			for range 3 {
				h.reads = nil
				h.must()
			}
			if len(h.reads) == 0 {
				t.Error("nothing is compared")
			}
			h.touch(test.changes)
			h.runs = 0
			h.must()
			same(t, "runs", 1, h.runs)
		})
	}
}

// A requested time is kept by reconciles that look nothing up.
func TestSkipUnreportedKeepsATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newWatched(t)
		h.after = time.Minute
		h.events.Update(h.touch(newThing()))
		h.must()
		h.must()
		pass(40 * time.Second)
		h.reads, h.runs = nil, 0
		same(t, "requeued after", 20*time.Second, h.must().RequeueAfter)
		none(t, "reads", h.reads)
		same(t, "runs", 0, h.runs)
		pass(20 * time.Second)
		h.must()
		same(t, "runs", 1, h.runs)
	})
}
