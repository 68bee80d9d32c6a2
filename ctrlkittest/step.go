// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Result is how a step ended, and what it has changed.
type Result[T client.Object] struct {
	// Object is the object as it is in the cluster now, nil if it is gone.
	Object T
	// Saved is what has changed of the metadata and the status, as a merge patch, without
	// conditions and observed generation; empty if nothing has.
	Saved string
	// Conditions are those of the object, by type: "False Waiting: waits for Secret default/db".
	// With the step alone in its engine, Ready is what the step makes of it.
	Conditions map[string]string
	// Writes are the writes of the step, in order, with their fields as far as they are known and
	// the error if they were refused: "create Secret default/db".
	Writes []string

	// Passed is true if steps after this one would be reached.
	Passed bool
	// Waits are what it waits for.
	Waits []string
	// After is when the object is to be reconciled again, zero for not before something changes. A
	// failure is tried again with a backoff instead.
	After time.Duration
	// Err is what has failed, and Class its class. Waits and exits are not failures.
	Err   error
	Class failure.Class

	// Client reads what else is in the cluster.
	Client client.Client
}

// Do runs Do of a step for an object that is not being deleted, and its Post, and saves the object.
// The step may be made of others. An object without a name is called "test", and one without a
// namespace is in "default".
func Do[T client.Object](t testing.TB, s step.Step[T], obj T, options ...Option) *Result[T] {
	t.Helper()
	return runStep(t, s, obj, newSettings(options), false)
}

// Cleanup runs Cleanup of a step for an object that is being deleted, and its Post. If it passes,
// the object is gone.
func Cleanup[T client.Object](t testing.TB, s step.Step[T], obj T, options ...Option) *Result[T] {
	t.Helper()
	return runStep(t, s, obj, newSettings(options), true)
}

// NewRequest returns a request for an object, for tests that call a method of a step, or a function
// of its own, themselves. Its client and its live reader are those of the API server in memory,
// which has the object; nothing is saved. Declare conditions with [WithConditions].
func NewRequest[T client.Object](t testing.TB, obj T, options ...Option) *step.Request[T] {
	t.Helper()
	s := newSettings(options)
	w := newWorld(t, s, obj)
	req := &step.Request[T]{
		Object: w.owner.(T), //nolint:errcheck // a copy has the type
		Client: w.client, APIReader: w.reader, Logger: logger(t), Now: time.Now(),
	}
	req.Snapshot() // from now on it is known
	if set, err := condition.NewSet(req.Object, condition.Options{Declared: s.declared, Now: req.Now}); err == nil {
		req.Conditions = set
	} else if len(s.declared) > 0 {
		t.Fatalf("ctrlkittest: %v", err)
	}
	if err := prepare(s, req); err != nil {
		t.Fatal(err)
	}
	return req
}

// finalizer is on the objects of all tests, so that the step alone makes the difference between two
// tests.
const finalizer = "ctrlkittest.ctrlkit.dev/object"

func runStep[T client.Object](t testing.TB, s step.Step[T], obj T, with *settings, deleted bool) *Result[T] {
	t.Helper()
	w := newWorld(t, with, obj, finalizer)
	if deleted {
		if err := w.direct.Delete(t.Context(), w.owner.DeepCopyObject().(client.Object)); err != nil { //nolint:errcheck // a copy has the type
			t.Fatalf("ctrlkittest: deleting the object: %v", err)
		}
	}
	before := w.read(obj)
	notes := &notes{}
	end := &end[T]{}
	start := &given[T]{with: with}
	engine, err := step.New(step.Options[T]{
		Name: "ctrlkittest", Client: w.client, APIReader: w.reader, Finalizer: finalizer, Failures: with.failures, Observers: []journal.Observer{notes},
	}, edges(start, s, end)...)
	if err != nil {
		t.Fatalf("ctrlkittest: %v", err)
	}
	ctx := log.IntoContext(t.Context(), logger(t))
	_, err = engine.Reconcile(ctx, ctrl.Request{NamespacedName: w.subject})
	if start.err != nil {
		t.Fatal(start.err)
	}
	after := w.read(obj)
	result := &Result[T]{Saved: saved(t, before, after), Client: w.direct, Err: err}
	if after != nil {
		result.Object = after.(T) //nolint:errcheck // it was read as one
	}
	notes.each(result.note)
	result.Passed = start.reached && end.reached
	result.Conditions = conditionsOf(after)
	return result
}

func logger(t testing.TB) logr.Logger { return testr.NewWithInterface(t, testr.Options{}) }

// read returns the object of the step, nil if it is gone.
func (w *world) read(like client.Object) client.Object {
	w.t.Helper()
	obj := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.Object) //nolint:errcheck // it is the type
	switch err := w.direct.Get(w.t.Context(), w.subject, obj); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		w.t.Fatalf("ctrlkittest: reading the object: %v", err)
	}
	obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
	return obj
}

// A given is the step before the one that is tested. As it has a Cleanup, each object has the
// finalizer.
type given[T client.Object] struct {
	with    *settings
	err     error
	reached bool // by Do, or by Cleanup
}

// An end is the step after it.
type end[T client.Object] struct{ reached bool }

// edges returns a step with one before it that prepares the request, and one after it that is
// reached if it passes. A cleanup runs in reverse order.
func edges[T client.Object](start *given[T], s step.Step[T], last *end[T]) []step.Step[T] {
	before := step.Step[T]{Name: "ctrlkittest: before", Do: start.prepare, Cleanup: func(context.Context, *step.Request[T]) error {
		start.reached = true
		return nil
	}}
	after := step.Step[T]{Name: "ctrlkittest: after", Do: func(context.Context, *step.Request[T]) error {
		last.reached = true
		return nil
	}, Cleanup: func(ctx context.Context, req *step.Request[T]) error {
		last.reached = true
		err := start.prepare(ctx, req)
		start.reached = false // the cleanup is still to reach it
		return err
	}}
	return []step.Step[T]{before, s, after}
}

func (g *given[T]) prepare(_ context.Context, req *step.Request[T]) error {
	g.err = prepare(g.with, req)
	g.reached = true
	return g.err
}

// notes are the events of the journal of an engine.
type notes struct {
	mu      sync.Mutex // for all below
	entries []journal.Entry
}

func (n *notes) Observe(_ context.Context, entry journal.Entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.entries = append(n.entries, entry)
}

func (n *notes) each(call func(journal.Event)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, entry := range n.entries {
		call(entry.Event)
	}
}

// note takes over what an event says.
func (r *Result[T]) note(event journal.Event) {
	switch e := event.(type) {
	case journal.Wrote:
		if e.Step != "" {
			r.Writes = append(r.Writes, e.String())
		}
	case journal.Finished:
		for _, wait := range e.Outcome.Waits {
			r.Waits = append(r.Waits, wait.For)
		}
		r.Err, r.Class, r.After = e.Outcome.Err, failure.Class(e.Outcome.Class), e.Outcome.RequeueAfter
	}
}

// saved returns what differs between two states of the object.
func saved(t testing.TB, before, after client.Object) string {
	t.Helper()
	if before == nil || after == nil {
		return ""
	}
	patch, err := jsonpatch.CreateMergePatch(savedPart(t, before), savedPart(t, after))
	if err != nil {
		t.Fatalf("ctrlkittest: comparing the object: %v", err)
	}
	if string(patch) == "{}" {
		return ""
	}
	return string(patch)
}

// savedPart returns of an object what steps save.
func savedPart(t testing.TB, obj client.Object) []byte {
	t.Helper()
	root := content(t, obj)
	kept := make(map[string]any)
	if metadata, ok := root["metadata"].(map[string]any); ok {
		of := make(map[string]any)
		for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			if value, ok := metadata[key]; ok {
				of[key] = value
			}
		}
		kept["metadata"] = of
	}
	status, _ := root["status"].(map[string]any)
	delete(status, "conditions")
	delete(status, "observedGeneration")
	if len(status) == 0 {
		status = map[string]any{}
	}
	kept["status"] = status
	data, err := json.Marshal(kept)
	if err != nil {
		t.Fatalf("ctrlkittest: encoding the object: %v", err)
	}
	return data
}

// conditionsOf describes the conditions of an object by their types.
func conditionsOf(obj client.Object) map[string]string {
	if obj == nil {
		return nil
	}
	conditions, err := condition.Of(obj)
	if err != nil {
		return nil
	}
	texts := make(map[string]string)
	for _, c := range conditions {
		texts[c.Type] = strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
	}
	return texts
}
