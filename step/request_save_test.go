// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// To read it into another object shows the newest version, and an object that is gone is not there.
func TestAStepThatReadsTheObjectElsewhere(t *testing.T) {
	w := newWorld(t, newThing())
	var sizes []int
	var gone error
	w.engine(doing("A", func(ctx context.Context, req *request) error {
		w.edit(func(obj *Thing) { obj.Spec.Size = 5 })
		newest := &Thing{}
		if err := req.Client.Get(ctx, client.ObjectKeyFromObject(req.Object), newest); err != nil {
			return err
		}
		sizes = append(sizes, req.Object.Spec.Size, newest.Spec.Size)
		w.remove(newThing())
		gone = req.Client.Get(ctx, client.ObjectKeyFromObject(req.Object), req.Object)
		return nil
	}))
	_, _ = w.reconcile()
	same(t, "sizes of the request's object and of the newest", []int{0, 5}, sizes)
	if !apierrors.IsNotFound(gone) {
		t.Errorf("the object is gone, and reading it again: %v", gone)
	}
}

// The client that a reconciler has kept from before writes past the request. The remedy says so.
func TestAStepThatWritesTheObjectPastTheRequest(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", func(ctx context.Context, req *request) error {
		req.Object.Status.Size++
		return w.client.Status().Update(ctx, req.Object)
	}))
	err := w.fails()
	if !errors.Is(err, step.ErrReadOnlyField) || !strings.Contains(err.Error(), "Request.Client") {
		t.Errorf("got %v, want an error that names Request.Client", err)
	}
	if way := failure.Classify(err).Remedy; !strings.Contains(way, "Request.Client") {
		t.Errorf("the remedy: %q", way)
	}
}

// When the operator stops, a step that fails because of that does so silently.
func TestAStepFailsSilentlyWhenTheOperatorStops(t *testing.T) {
	w := newWorld(t, newThing())
	ctx, stop := context.WithCancel(t.Context())
	e := w.engine(doing("A", func(ctx context.Context, _ *request) error {
		stop()
		return ctx.Err()
	}))
	_, _ = e.Reconcile(ctx, thingRequest)
	w.is(condition.Ready, "")
	w.said()
}

// What is read past the cache may change without an event, so that the object is never skipped.
func TestLiveReadsAreNotSkipped(t *testing.T) {
	w := newWorld(t, newThing(), configMap("input", map[string]string{"size": "1"}))
	options := w.options()
	options.APIReader, options.SkipUnchanged = w.liveReader(), true
	w.engineWith(options, doing("A", func(ctx context.Context, req *request) error {
		input := configMap("input", nil)
		if err := req.APIReader.Get(ctx, client.ObjectKeyFromObject(input), input); err != nil {
			return err
		}
		req.Object.Status.Phase = input.Data["size"]
		return nil
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
		doing("A", func(ctx context.Context, req *request) error {
			req.Object.Status.Size = 7
			return ctrlkit.AsError(ctrlkit.ParallelJoin(save(req), save(req)).Run(ctx))
		}),
		doing("B", func(ctx context.Context, req *request) error {
			req.Object.Status.Phase = "done"
			return req.Client.Status().Update(ctx, req.Object)
		}),
		doing("C", changing(func(obj *Thing) { obj.Status.Counters = map[string]int{"c": 1} })),
	))
	w.must()
	if got := w.thing().Status; got.Size != 7 || got.Phase != "done" || got.Counters["c"] != 1 {
		t.Errorf("got %+v", got)
	}
}
