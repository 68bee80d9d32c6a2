// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
)

func TestSaveDoesNotOverwrite(t *testing.T) {
	w := newWorld(t, newThing())
	var got error
	w.engine(doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
		w.editStatus(func(obj *Thing) { obj.Status.Phase = "theirs" })
		req.Object.Status.Phase = "ours"
		got = req.Save(ctx)
		return ctrl.Result{}, got
	}))
	w.conflicts()
	if !apierrors.IsConflict(got) || !strings.Contains(got.Error(), ".status.phase") {
		t.Errorf("got %v, want a conflict about .status.phase", got)
	}
	same(t, "status.phase", "theirs", w.thing().Status.Phase)
}

// Other clients may change other fields while a reconcile works: nothing that it has earned is
// discarded, and nothing of theirs is overwritten.
func TestForeignChangesDoNotDiscardTheStatus(t *testing.T) {
	foreign := metav1.Condition{Type: "example.com/Scanned", Status: metav1.ConditionTrue, Reason: "Clean", LastTransitionTime: metav1.Now().Rfc3339Copy()}
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live reader: ", live), func(t *testing.T) {
			w := newWorld(t, newThing())
			options := w.options()
			if live {
				options.APIReader = w.liveReader()
			}
			made := 0
			steps := cleaning("A", does(func(_ context.Context, req *request) {
				if req.Object.Status.Size == 0 {
					made++
					req.Object.Status.Size = 7
					metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "id", "7")
					w.edit(func(obj *Thing) {
						metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "them")
						obj.Finalizers = append(obj.Finalizers, foreignFinalizer)
						obj.Spec.Size = 5
					})
					w.editStatus(func(obj *Thing) {
						obj.Status.Counters = map[string]int{"theirs": 1}
						meta.SetStatusCondition(&obj.Status.Conditions, foreign)
					})
				}
			}), passes)
			w.engineWith(options, steps)
			w.must()
			w.must()
			got := w.thing()
			if made != 1 || got.Status.Size != 7 || got.Annotations["id"] != "7" {
				t.Errorf("%d were made, and recorded is %+v", made, got)
			}
			if got.Labels["by"] != "them" || got.Spec.Size != 5 || got.Status.Counters["theirs"] != 1 || meta.FindStatusCondition(got.Status.Conditions, foreign.Type) == nil {
				t.Errorf("it was overwritten: %+v", got)
			}
			same(t, "finalizers", []string{finalizer, foreignFinalizer}, got.Finalizers)
			if ready := meta.FindStatusCondition(got.Status.Conditions, condition.Ready); ready == nil || ready.ObservedGeneration != got.Generation {
				t.Errorf("Ready: %v, generation %d", ready, got.Generation)
			}
		})
	}
}

// What another client has written before a Save stays when the same part is written again.
func TestForeignChangesBeforeASaveStay(t *testing.T) {
	foreign := metav1.Condition{Type: "example.com/Scanned", Status: metav1.ConditionTrue, Reason: "Clean", LastTransitionTime: metav1.Now().Rfc3339Copy()}
	tests := []struct {
		name  string
		again func(ctx context.Context, w *world, req *request) error // between the Save and the end
	}{
		{"the end", func(context.Context, *world, *request) error { return nil }},
		{"a second Save", func(ctx context.Context, _ *world, req *request) error {
			req.Object.Status.Phase = "second"
			req.Object.OwnerReferences = append(req.Object.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "b", UID: "b"})
			return req.Save(ctx)
		}},
		{"a second Save and another client", func(ctx context.Context, w *world, req *request) error {
			w.edit(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "others") })
			req.Object.Status.Phase = "second"
			return req.Save(ctx)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
				if req.Object.Status.Size == 7 {
					return ctrlkit.NoRequeue()
				}
				w.edit(func(obj *Thing) {
					obj.OwnerReferences = append(obj.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"})
				})
				w.editStatus(func(obj *Thing) { meta.SetStatusCondition(&obj.Status.Conditions, foreign) })
				req.Object.Status.Size = 7
				req.Object.OwnerReferences = append(req.Object.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"})
				if err := req.Save(ctx); err != nil {
					return ctrl.Result{}, err
				}
				return ctrlkit.RequeueIfError(test.again(ctx, w, req))
			}))
			w.must()
			got := w.thing()
			if got.Status.Size != 7 || meta.FindStatusCondition(got.Status.Conditions, foreign.Type) == nil || w.conditionOf(condition.Ready) != "True Ready" {
				t.Errorf("status: %+v", got.Status)
			}
			for _, uid := range []types.UID{"a", "theirs"} {
				if !slices.ContainsFunc(got.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == uid }) {
					t.Errorf("the owner reference to %s is lost: %v", uid, got.OwnerReferences)
				}
			}
			w.takeWrites()
			w.must()
			w.wrote()
		})
	}
}

// A condition of which another client has changed only the time is no conflict, and its time stays.
func TestATransitionTimeOfAnotherClientStays(t *testing.T) {
	w := newWorld(t, newThing())
	text := "one"
	do := func(*request) {}
	w.engine(keeping("A", does(func(_ context.Context, req *request) {
		req.Conditions.MarkHealthy("Found", "Found", text)
		do(req)
	}), "Found"))
	w.must()
	later := metav1.Now().Add(time.Hour).Truncate(time.Second)
	text = "two"
	do = func(*request) {
		w.editStatus(func(obj *Thing) {
			meta.FindStatusCondition(obj.Status.Conditions, "Found").LastTransitionTime = metav1.NewTime(later)
		})
	}
	w.must()
	if c := meta.FindStatusCondition(w.thing().Status.Conditions, "Found"); c.Message != "two" || !c.LastTransitionTime.Time.Equal(later) {
		t.Errorf("got %+v, want the time of the other client, %v", c, later)
	}
}

// With an edit of another client every 100 ms and steps that take longer, everything is done within
// seconds.
func TestABusyCoWriterStarvesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		cleanups := 0
		liveEngine(w, cleaning("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
			pass(300 * time.Millisecond)
			req.Object.Status.Size = 7
			return ctrlkit.RequeueIfError(client.IgnoreAlreadyExists(req.Client.Create(ctx, configMap("child", nil))))
		}, does(func(context.Context, *request) {
			pass(2 * time.Second)
			cleanups++
		})))
		ctx, stop := context.WithCancel(t.Context())
		var coWriter sync.WaitGroup
		defer coWriter.Wait()
		defer stop()
		coWriter.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				patch := mergePatch(`{"metadata":{"annotations":{"seen":"%d"}}}`, i)
				_ = w.server.Patch(ctx, newThing(), patch)
				pass(100 * time.Millisecond)
			}
		})
		until := func(what string, done func() bool) {
			t.Helper()
			began := time.Now()
			for !done() {
				result, err := w.reconcile()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				pass(max(result.RequeueAfter, 10*time.Millisecond))
				if time.Since(began) > 10*time.Second {
					t.Fatalf("%s: not after %v: %+v", what, time.Since(began), w.thing())
				}
			}
		}
		until("status, child and conditions", func() bool {
			child := configMap("child", nil)
			return w.thing().Status.Size == 7 && w.conditionOf(condition.Ready) == "True Ready" && w.server.Get(ctx, client.ObjectKeyFromObject(child), child) == nil
		})
		w.remove(newThing())
		until("cleanup", func() bool { return w.thing() == nil })
		same(t, "cleanups", 1, cleanups)
	})
}
