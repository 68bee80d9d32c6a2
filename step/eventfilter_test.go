// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

func childOf(name string, owner metav1.OwnerReference) *corev1.ConfigMap {
	cm := configMap(name, nil)
	cm.OwnerReferences = []metav1.OwnerReference{owner}
	return cm
}

var ownedByA = metav1.OwnerReference{APIVersion: "test.example.com/v2", Kind: "Thing", Name: "a", UID: "uid-a"}

func TestCauses(t *testing.T) {
	later := newThing()
	later.ResourceVersion = "12345"
	tests := []struct {
		name string
		send func(w *world, l predicate.Predicate)
		want []string
	}{
		{"nothing", func(*world, predicate.Predicate) {}, []string{"start"}},
		{"the first list", func(_ *world, l predicate.Predicate) {
			l.Create(event.CreateEvent{Object: newThing(), IsInInitialList: true})
		}, []string{"start"}},
		{"created", func(_ *world, l predicate.Predicate) { l.Create(event.CreateEvent{Object: newThing()}) }, []string{"own change (created)"}},
		{"updated", func(_ *world, l predicate.Predicate) {
			l.Update(event.UpdateEvent{ObjectOld: newThing(), ObjectNew: later})
		}, []string{"own change (updated)"}},
		{"notified", func(_ *world, l predicate.Predicate) { l.Generic(event.GenericEvent{Object: newThing()}) }, []string{"own change (notified)"}},
		{"deleted", func(_ *world, l predicate.Predicate) { l.Delete(event.DeleteEvent{Object: newThing()}) }, []string{"own change (deleted)"}},
		{"updated three times", func(_ *world, l predicate.Predicate) {
			for range 3 {
				l.Update(event.UpdateEvent{ObjectOld: newThing(), ObjectNew: later})
			}
		}, []string{"own change (updated) 3 times"}},
		{"our own write", func(w *world, l predicate.Predicate) {
			w.must()
			l.Update(event.UpdateEvent{ObjectOld: newThing(), ObjectNew: w.thing()})
		}, []string{"own write (updated)"}},
		{"a child", func(_ *world, l predicate.Predicate) {
			l.Create(event.CreateEvent{Object: childOf("child", ownedByA)})
			l.Update(event.UpdateEvent{ObjectOld: childOf("child", ownedByA), ObjectNew: childOf("child", ownedByA)})
			l.Update(event.UpdateEvent{ObjectOld: childOf("child", ownedByA), ObjectNew: childOf("child", ownedByA)})
			l.Delete(event.DeleteEvent{Object: childOf("child-2", ownedByA)})
		}, []string{"ConfigMap default/child created", "ConfigMap default/child updated 2 times", "ConfigMap default/child-2 deleted"}},
		{"the child of another", func(_ *world, l predicate.Predicate) {
			for _, owner := range []metav1.OwnerReference{
				{APIVersion: "other.example.com/v1", Kind: "Thing", Name: "a"},
				{APIVersion: "test.example.com/v1", Kind: "Other", Name: "a"},
				{APIVersion: "test.example.com/v1", Kind: "Thing", Name: "b"},
				{APIVersion: "no/api/version", Kind: "Thing", Name: "a"},
			} {
				l.Create(event.CreateEvent{Object: childOf("child", owner)})
			}
		}, []string{"start"}},
		{"several kinds of causes", func(_ *world, l predicate.Predicate) {
			l.Update(event.UpdateEvent{ObjectOld: newThing(), ObjectNew: later})
			l.Create(event.CreateEvent{Object: childOf("child", ownedByA)})
		}, []string{"own change (updated)", "ConfigMap default/child created"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			e := w.engine(doing("A", passes))
			test.send(w, e.EventFilter())
			w.entries = nil
			w.must()
			var got []string
			for _, cause := range recorded[journal.Started](w)[0].Causes {
				got = append(got, cause.String())
			}
			same(t, "causes", test.want, got)
			w.must()
			if got := recorded[journal.Started](w)[1].Causes; len(got) != 1 || got[0].Kind != journal.CauseUnknown {
				t.Errorf("the causes are reported twice: %v", got)
			}
		})
	}
}

// However many causes there are, none is lost, and they do not fill the memory.
func TestManyCauses(t *testing.T) {
	w := newWorld(t, newThing())
	e := w.engine(doing("A", passes))
	for i := range 1000 {
		e.EventFilter().Create(event.CreateEvent{Object: childOf(fmt.Sprint("child-", i), ownedByA)})
	}
	w.must()
	causes, times := recorded[journal.Started](w)[0].Causes, 0
	for _, c := range causes {
		times += c.Times
	}
	if len(causes) > 16 || times != 1000 {
		t.Errorf("%d causes, which happened %d times, want few, and 1000", len(causes), times)
	}
}

func TestTriggeredIsRecordedAtOnce(t *testing.T) {
	w := newWorld(t, newThing())
	e := w.engine(doing("A", passes))
	e.EventFilter().Create(event.CreateEvent{Object: newThing(), IsInInitialList: true}) // there is one for every object
	e.EventFilter().Create(event.CreateEvent{Object: childOf("child", ownedByA)})
	want := []journal.Triggered{{Cause: journal.Cause{
		Kind: journal.CauseChildChange, Verb: "created", Times: 1, Object: journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "child"},
	}}}
	same(t, "triggered", want, recorded[journal.Triggered](w))
	same(t, "object of the entry", "Thing default/a", w.entries[0].Object.String())
}

func TestOwnersWithoutANamespace(t *testing.T) {
	w := newWorld(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}})
	e, err := step.New(step.Options[*corev1.Node]{Name: "nodes", Client: w.client, Observers: []journal.Observer{w}},
		step.Step[*corev1.Node]{Name: "A", Do: func(context.Context, *step.Request[*corev1.Node]) error { return nil }})
	must(t, err)
	e.EventFilter().Create(event.CreateEvent{Object: childOf("child", metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n"})})
	if _, err := e.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	got := recorded[journal.Started](w)[0].Causes
	if len(got) != 1 || got[0].String() != "ConfigMap default/child created" {
		t.Errorf("causes: %v", got)
	}
}

// The events of all watches pass, and are recorded, also without an observer.
func TestEventFilterFiltersNothing(t *testing.T) {
	for _, observed := range []bool{false, true} {
		w := newWorld(t)
		options := w.options()
		if !observed {
			options.Observers = nil
		}
		l := w.engineWith(options, cleaning("A", passes, passes)).EventFilter()
		for _, obj := range []client.Object{newThing(), configMap("other", nil), childOf("child", ownedByA)} {
			if !l.Create(event.CreateEvent{Object: obj}) || !l.Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}) ||
				!l.Delete(event.DeleteEvent{Object: obj}) || !l.Generic(event.GenericEvent{Object: obj}) {
				t.Errorf("an event of %T was filtered", obj)
			}
		}
	}
}

func TestForeignChanges(t *testing.T) {
	toA := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{thingRequest}
	})
	queues := map[string]func() workqueue.TypedRateLimitingInterface[reconcile.Request]{
		"classic": func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		},
		"priority": func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return priorityqueue.New[reconcile.Request]("things")
		},
	}
	for name, queue := range queues {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newThing())
			e := w.engine(doing("A", passes))
			q := queue()
			defer q.ShutDown()
			h, cm := e.WrapHandler(toA), configMap("foreign", nil)
			h.Create(t.Context(), event.CreateEvent{Object: cm}, q)
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: cm, ObjectNew: cm}, q)
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: cm, ObjectNew: cm}, q)
			h.Delete(t.Context(), event.DeleteEvent{Object: cm}, q)
			h.Generic(t.Context(), event.GenericEvent{Object: cm}, q)
			if got, _ := q.Get(); got != thingRequest {
				t.Errorf("the queue has %v", got)
			}
			w.must()
			var got []string
			for _, cause := range recorded[journal.Started](w)[0].Causes {
				got = append(got, fmt.Sprintf("%s: %s", cause.Kind, cause))
			}
			want := []string{
				"foreign change: ConfigMap default/foreign created", "foreign change: ConfigMap default/foreign updated 2 times",
				"foreign change: ConfigMap default/foreign deleted", "foreign change: ConfigMap default/foreign notified",
			}
			same(t, "causes", want, got)
		})
	}
}

// Events come while reconciles run.
func TestEventsAndReconcilesAtTheSameTime(t *testing.T) {
	w := newWorld(t, newThing())
	e := w.engine(cleaning("A", passes, passes))
	done := make(chan struct{})
	last := newThing()
	last.UID, last.Finalizers = "uid-old", []string{finalizer}
	go func() {
		defer close(done)
		for i := range 50 {
			e.EventFilter().Create(event.CreateEvent{Object: childOf(fmt.Sprint("child-", i), ownedByA)})
			e.EventFilter().Update(event.UpdateEvent{ObjectOld: newThing(), ObjectNew: newThing()})
			e.EventFilter().Delete(event.DeleteEvent{Object: last})
		}
	}()
	for range 20 {
		w.must()
	}
	<-done
	w.must()
}
