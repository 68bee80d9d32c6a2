// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/references"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A watched is an engine for ConfigMaps whose step reads a Secret, one that is not there, a Node,
// the ServiceAccounts of its namespace, and a Service. The test delivers the events of its watches.
type watched struct {
	t      *testing.T
	client client.Client
	engine *Engine[*corev1.ConfigMap]
	events predicate.Predicate

	reads, runs int
	after       time.Duration    // the step requests it
	onRead      func(key string) // called when something was read: "Secret a"
	results     []journal.Result
}

func (h *watched) Observe(_ context.Context, entry journal.Entry) {
	if finished, ok := entry.Event.(journal.Finished); ok {
		h.results = append(h.results, finished.Result)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1"}
}

// arranged are the objects that are there, the Service last.
func arranged() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("own")}, &corev1.Secret{ObjectMeta: meta("a")}, &corev1.ServiceAccount{ObjectMeta: meta("a")},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, &corev1.Service{ObjectMeta: meta("a")},
	}
}

// newWatched returns an engine that has found its object unchanged once, without a read.
func newWatched(t *testing.T) *watched {
	t.Helper()
	log.SetLogger(logr.Discard())
	h := &watched{t: t}
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithGlobalResourceVersionCounter().WithObjects(arranged()...).Build()
	h.client = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			h.reads++
			if _, ok := obj.(*corev1.Node); ok {
				key.Namespace = "" // as the cache does
			}
			err := c.Get(ctx, key, obj, opts...)
			if gvk, e := c.GroupVersionKindFor(obj); h.onRead != nil && e == nil {
				h.onRead(gvk.Kind + " " + key.Name)
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			h.reads++
			return c.List(ctx, list, opts...)
		},
	})
	h.start(arranged()...)
	h.reconcile() // runs the step
	h.reads = 0
	if h.reconcile(); h.runs != 1 || h.reads != 0 {
		t.Fatalf("the step ran %d times, want once; then there were %d reads", h.runs, h.reads)
	}
	return h
}

// start makes the engine, as a process that begins does, whose watches list these objects.
func (h *watched) start(listed ...client.Object) {
	h.t.Helper()
	var err error
	h.engine, err = New(Options[*corev1.ConfigMap]{Name: "own", Client: h.client, SkipUnchanged: true, Observers: []journal.Observer{h}}, Func("Read", h.do))
	must(h.t, err)
	h.engine.sees, h.events = true, h.engine.EventFilter()
	for _, obj := range listed {
		h.events.Create(event.CreateEvent{Object: obj, IsInInitialList: true})
	}
}

func (h *watched) do(ctx context.Context, req *Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	h.runs++
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }
	for name, obj := range map[string]client.Object{"a": &corev1.Secret{}, "absent": &corev1.Secret{}, "n": &corev1.Node{}} {
		if err := req.Client.Get(ctx, key(name), obj); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	if err := req.Client.Get(ctx, key("a"), &corev1.Service{}); err != nil {
		return ctrl.Result{}, err
	}
	if err := req.Client.List(ctx, &corev1.ServiceAccountList{}, client.InNamespace("default")); err != nil {
		return ctrl.Result{}, err
	}
	if h.after > 0 {
		return ctrlkit.ContinueAndRequeueAfter(h.after)
	}
	return ctrlkit.NoRequeue()
}

func (h *watched) reconcile() ctrl.Result {
	h.t.Helper()
	result, err := h.engine.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "own"}})
	must(h.t, err)
	return result
}

// touch changes an object, and returns its state before and after.
func (h *watched) touch(obj client.Object) event.UpdateEvent {
	h.t.Helper()
	must(h.t, h.client.Get(h.t.Context(), client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	obj.SetLabels(map[string]string{"changed": "yes"})
	must(h.t, h.client.Update(h.t.Context(), obj))
	h.reads = 0
	return event.UpdateEvent{ObjectOld: before, ObjectNew: obj}
}

func (h *watched) create(obj client.Object) event.CreateEvent {
	h.t.Helper()
	must(h.t, h.client.Create(h.t.Context(), obj))
	return event.CreateEvent{Object: obj}
}

func (h *watched) remove(obj client.Object) event.DeleteEvent {
	h.t.Helper()
	must(h.t, h.client.Delete(h.t.Context(), obj))
	return event.DeleteEvent{Object: obj}
}

// What the watches of a controller report decides whether an idle object is read, and what is read
// decides whether its steps run.
func TestSkipUnreported(t *testing.T) {
	secret := func(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: meta(name)} }
	same := func(obj client.Object) event.UpdateEvent { return event.UpdateEvent{ObjectOld: obj, ObjectNew: obj} }
	tests := []struct {
		name        string
		happen      func(h *watched)
		reads, runs bool
	}{
		{"nothing", func(*watched) {}, false, false},
		{"an input changes", func(h *watched) { h.events.Update(h.touch(secret("a"))) }, true, true},
		{"an input is gone", func(h *watched) { h.events.Delete(h.remove(secret("a"))) }, true, true},
		{"an absent one comes", func(h *watched) { h.events.Create(h.create(secret("absent"))) }, true, true},
		{"an object of a list comes", func(h *watched) { h.events.Create(h.create(&corev1.ServiceAccount{ObjectMeta: meta("b")})) }, true, true},
		{"an input without a namespace changes", func(h *watched) {
			h.events.Update(h.touch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
		}, true, true},
		{"the object changes", func(h *watched) { h.events.Update(h.touch(&corev1.ConfigMap{ObjectMeta: meta("own")})) }, true, true},
		{"the object is gone", func(h *watched) { h.events.Delete(h.remove(&corev1.ConfigMap{ObjectMeta: meta("own")})) }, true, false},
		{"another object changes", func(h *watched) { h.events.Create(h.create(secret("other"))) }, false, false},
		{"an event that changes nothing", func(h *watched) { h.events.Generic(event.GenericEvent{Object: secret("a")}) }, true, false},
		{"a resync", func(h *watched) {
			a, own := secret("a"), &corev1.ConfigMap{ObjectMeta: meta("own")}
			a.ResourceVersion, own.ResourceVersion = "1", "2"
			h.events.Update(same(a))
			h.events.Update(same(own))
		}, false, false},
		{"another object of the same name and version", func(h *watched) {
			a, b := secret("a"), secret("a")
			a.ResourceVersion, b.ResourceVersion, b.UID = "1", "1", "uid-2"
			h.events.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b})
		}, true, false},
		{"only metadata is watched", func(h *watched) {
			h.touch(secret("a"))
			h.events.Generic(event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: meta("a")}})
		}, false, false},
		{"a change that no event has reported yet", func(h *watched) { h.touch(secret("a")) }, false, false},
		{"an hour", func(*watched) { time.Sleep(time.Hour) }, true, true},
		{"a restart", func(h *watched) { h.start(arranged()...) }, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newWatched(t)
				h.reconcile()
				if h.reads != 0 || h.results[len(h.results)-1] != journal.ResultConverged {
					t.Fatalf("an idle object costs %d reads, and is %s", h.reads, h.results[len(h.results)-1])
				}
				test.happen(h)
				h.reads, h.runs = 0, 0
				h.reconcile()
				if (h.reads > 0) != test.reads || (h.runs > 0) != test.runs {
					t.Errorf("%d reads and %d runs, want any: %v, %v", h.reads, h.runs, test.reads, test.runs)
				}
				if test.runs { // and the object becomes idle again
					h.reconcile()
				}
				h.reads = 0
				if h.reconcile(); h.reads > 0 && h.results[len(h.results)-1] == journal.ResultConverged {
					t.Errorf("%d reads of an object that is idle again", h.reads)
				}
			})
		})
	}
}

// A change that comes while the inputs are compared, or while the steps run, is compared by the next
// reconcile.
func TestAChangeDuringAReconcile(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: meta("a")}
	t.Run("while it compares", func(t *testing.T) {
		h := newWatched(t)
		h.events.Generic(event.GenericEvent{Object: secret}) // so that it compares
		h.onRead = func(key string) {
			if h.onRead = nil; key != "ConfigMap own" {
				t.Fatalf("%s is read first", key)
			}
			h.onRead = func(key string) {
				if key == "Secret a" { // it was just read as it was before
					h.onRead = nil
					h.events.Update(h.touch(&corev1.Secret{ObjectMeta: meta("a")}))
				}
			}
		}
		h.runs = 0
		h.reconcile()
		if h.runs != 0 {
			t.Fatal("the step has run: the change came too early")
		}
		if h.reconcile(); h.runs != 1 {
			t.Errorf("the step ran %d times, want once", h.runs)
		}
	})
	t.Run("while the step runs", func(t *testing.T) {
		h := newWatched(t)
		h.onRead = func(key string) {
			if key == "Secret a" && h.runs > 0 {
				h.onRead = nil
				h.events.Update(h.touch(&corev1.Secret{ObjectMeta: meta("a")}))
			}
		}
		h.events.Update(h.touch(&corev1.ConfigMap{ObjectMeta: meta("own")}))
		h.runs = 0
		h.reconcile()
		if h.onRead != nil {
			t.Fatal("nothing has changed meanwhile")
		}
		if h.reconcile(); h.runs != 2 {
			t.Errorf("the step ran %d times, want twice", h.runs)
		}
	})
}

// An input of a type that no watch reports is compared each time.
func TestAnInputThatIsNotWatched(t *testing.T) {
	h := newWatched(t)
	h.start(arranged()[:4]...)
	for range 3 {
		h.reconcile()
	}
	if h.reads == 0 {
		t.Error("the Service is not read")
	}
	h.touch(&corev1.Service{ObjectMeta: meta("a")})
	h.runs = 0
	if h.reconcile(); h.runs != 1 {
		t.Error("a change of the Service is not noticed")
	}
}

// An engine whose filter may miss events compares each time.
func TestAnEngineThatMayMissEvents(t *testing.T) {
	h := newWatched(t)
	h.engine.sees = false
	for range 2 {
		h.reads = 0
		if h.reconcile(); h.reads == 0 {
			t.Error("nothing is compared")
		}
	}
	h.touch(&corev1.Secret{ObjectMeta: meta("a")})
	h.runs = 0
	if h.reconcile(); h.runs != 1 {
		t.Error("a change is not noticed")
	}
}

// A requested time is kept by reconciles that look nothing up.
func TestSkipUnreportedKeepsATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newWatched(t)
		h.after = time.Minute
		h.events.Update(h.touch(&corev1.ConfigMap{ObjectMeta: meta("own")}))
		h.reconcile()
		h.reconcile()
		time.Sleep(40 * time.Second)
		h.reads, h.runs = 0, 0
		if got := h.reconcile(); got.RequeueAfter != 20*time.Second || h.reads+h.runs > 0 {
			t.Errorf("got %v after %d reads and %d runs", got, h.reads, h.runs)
		}
		time.Sleep(20 * time.Second)
		if h.reconcile(); h.runs != 1 {
			t.Errorf("the step ran %d times when it was due", h.runs)
		}
	})
}

// A filter that the builder had before hides events. Which it has, is found in a field of the
// builder that is not exported: this test fails if a new version calls it otherwise.
func TestFiltersOfABuilder(t *testing.T) {
	tests := []struct {
		name string
		add  func(b *builder.Builder)
		want bool
	}{
		{"none", func(*builder.Builder) {}, false},
		{"those of WatchNamed", func(b *builder.Builder) { b.WithEventFilter(&references.Index[*corev1.ConfigMap]{}) }, false},
		{"another one", func(b *builder.Builder) { b.WithEventFilter(predicate.GenerationChangedPredicate{}) }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := &builder.Builder{}
			test.add(b)
			if got := filtered[*corev1.ConfigMap](b); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
