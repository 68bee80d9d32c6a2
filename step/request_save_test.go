// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// A step writes down what it is about to make, makes it, and crashes. The next reconcile finds what
// was written down.
func TestSaveBeforeActing(t *testing.T) {
	w := newWorld(t, newThing())
	crash := true
	var made []string
	do := func(ctx context.Context, req *request) (ctrl.Result, error) {
		if req.Object.Status.Phase == "" {
			req.Object.Status.Phase = fmt.Sprint("token-", len(made))
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "token", "yes")
			w.edit(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "them") })
			if err := req.Save(ctx); err != nil {
				return ctrl.Result{}, err
			}
		}
		if !slices.Contains(made, req.Object.Status.Phase) { // the system outside knows the token
			made = append(made, req.Object.Status.Phase)
		}
		if crash {
			w.fault = failOn("patch", errFirst) // nothing more of this process is written
			crash = false
		}
		return ctrlkit.NoRequeue()
	}
	w.engine(doing("A", do))
	_, _ = w.reconcile()
	w.fault = nil
	w.engine(doing("A", do)) // another process
	w.must()
	same(t, "made", []string{"token-0"}, made)
	if got := w.thing(); got.Status.Phase != "token-0" || got.Labels["token"] != "yes" || got.Labels["by"] != "them" || w.conditionOf(condition.Ready) != "True Ready" {
		t.Errorf("got %+v", got)
	}
	w.takeWrites()
	w.must()
	w.wrote()
}

// It also brings along the line that reads the object again before its status is written, so that
// the write meets no conflict. What the step has changed, what was saved and what other clients
// have changed all stay.
func TestAStepThatReadsTheObjectAgain(t *testing.T) {
	readers := map[string]func(req *request) client.Reader{
		"Client": func(req *request) client.Reader { return req.Client },
		"Live":   func(req *request) client.Reader { return req.APIReader },
	}
	for name, reader := range readers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.cache[thingRequest.NamespacedName] = w.thing() // which does not come to know of what is saved
			liveEngine(w, doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
				req.Object.Status.Phase = "saved"
				if err := req.Client.Status().Update(ctx, req.Object); err != nil {
					return ctrl.Result{}, err
				}
				w.edit(func(obj *Thing) {
					obj.Spec.Size = 5
					metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "them")
				})
				meta.SetStatusCondition(&req.Object.Status.Conditions, metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "Because"})
				if err := reader(req).Get(ctx, client.ObjectKeyFromObject(req.Object), req.Object); err != nil {
					return ctrl.Result{}, err
				}
				req.Object.Status.Size = 7
				return ctrlkit.RequeueIfError(req.Client.Status().Update(ctx, req.Object))
			}))
			w.must()
			got := w.thing()
			if got.Status.Size != 7 || got.Status.Phase != "saved" || got.Spec.Size != 5 || got.Labels["by"] != "them" {
				t.Errorf("got %+v", got)
			}
			w.is("Available", "True Because")
		})
	}
}

// To read it into another object shows the newest version, and an object that is gone is not there.
func TestAStepThatReadsTheObjectElsewhere(t *testing.T) {
	w := newWorld(t, newThing())
	var sizes []int
	var gone error
	w.engine(doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
		w.edit(func(obj *Thing) { obj.Spec.Size = 5 })
		newest := &Thing{}
		if err := req.Client.Get(ctx, client.ObjectKeyFromObject(req.Object), newest); err != nil {
			return ctrl.Result{}, err
		}
		sizes = append(sizes, req.Object.Spec.Size, newest.Spec.Size)
		w.remove(newThing())
		gone = req.Client.Get(ctx, client.ObjectKeyFromObject(req.Object), req.Object)
		return ctrlkit.NoRequeue()
	}))
	_, _ = w.reconcile()
	same(t, "sizes of the request's object and of the newest", []int{0, 5}, sizes)
	if !apierrors.IsNotFound(gone) {
		t.Errorf("the object is gone, and reading it again: %v", gone)
	}
}

// The client that a reconciler has kept from before writes past the request. The error says so.
func TestAStepThatWritesTheObjectPastTheRequest(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
		req.Object.Status.Size++
		return ctrlkit.RequeueIfError(w.client.Status().Update(ctx, req.Object))
	}))
	err := w.fails()
	if !errors.Is(err, step.ErrReadOnlyField) || !strings.Contains(err.Error(), "Request.Client") {
		t.Errorf("got %v, want an error that names Request.Client", err)
	}
	if way := failure.Classify(err).Remedy; !strings.Contains(way, "Request.Client") {
		t.Errorf("the remedy: %q", way)
	}
}

// A step that cancels a context of its own has failed like any other.
func TestAContextThatAStepHasCanceled(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", func(ctx context.Context, _ *request) (ctrl.Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctrl.Result{}, fmt.Errorf("asking the bank: %w", ctx.Err())
	}))
	if err := w.fails(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.begins(condition.Ready, "False TemporaryError: A: asking the bank: context canceled")
	if got := w.takeEvents(); len(got) != 1 {
		t.Errorf("events: %v", got)
	}
	t.Run("when the operator stops it is silent", func(t *testing.T) {
		w := newWorld(t, newThing())
		ctx, stop := context.WithCancel(t.Context())
		e := w.engine(doing("A", func(ctx context.Context, _ *request) (ctrl.Result, error) {
			stop()
			return ctrl.Result{}, ctx.Err()
		}))
		_, _ = e.Reconcile(ctx, thingRequest)
		w.is(condition.Ready, "")
		w.said()
	})
}

// What is read past the cache may change without an event, so that the object is never skipped.
func TestLiveReadsAreNotSkipped(t *testing.T) {
	w := newWorld(t, newThing(), configMap("input", map[string]string{"size": "1"}))
	options := w.options()
	options.APIReader, options.SkipUnchanged = w.liveReader(), true
	w.engineWith(options, doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
		input := configMap("input", nil)
		if err := req.APIReader.Get(ctx, client.ObjectKeyFromObject(input), input); err != nil {
			return ctrl.Result{}, err
		}
		req.Object.Status.Phase = input.Data["size"]
		return ctrlkit.NoRequeue()
	}))
	w.must()
	w.must()
	must(t, w.server.Update(t.Context(), configMap("input", map[string]string{"size": "2"})))
	w.must()
	same(t, "status.phase", "2", w.thing().Status.Phase)
}

// Steps of a group save while the others change the object.
func TestSaveInAGroup(t *testing.T) {
	w := newWorld(t, newThing())
	save := func(req *request) ctrlkit.Action {
		return ctrlkit.NewAction("save", func(ctx context.Context) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Save(ctx))
		})
	}
	w.engine(step.Group("g",
		doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
			req.Object.Status.Size = 7
			return ctrlkit.ParallelJoin(save(req), save(req)).Run(ctx)
		}),
		doing("B", func(ctx context.Context, req *request) (ctrl.Result, error) {
			req.Object.Status.Phase = "done"
			return ctrlkit.RequeueIfError(req.Client.Status().Update(ctx, req.Object))
		}),
		doing("C", changing(func(obj *Thing) { obj.Status.Counters = map[string]int{"c": 1} })),
	))
	w.must()
	if got := w.thing().Status; got.Size != 7 || got.Phase != "done" || got.Counters["c"] != 1 {
		t.Errorf("got %+v", got)
	}
}
