// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestWorkflow(t *testing.T) {
	w := newWorld(t, newThing())
	builds := 0
	action := func(name string, result func() (ctrl.Result, error)) ctrlkit.Action {
		return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return result() })
	}
	w.engine(step.Step[*Thing]{Name: "Run", Do: step.Workflow(func(req *request) ctrlkit.Action {
		builds++
		req.Object.Status.Size = builds
		return ctrlkit.JoinOrdered(
			action("good", ctrlkit.NoRequeue),
			action("bad", func() (ctrl.Result, error) { return ctrl.Result{}, errFirst }),
			action("waiting", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("Secret default/db") }),
		)
	}), Cleanup: step.Workflow(noAction)})
	for i := range 2 {
		err := w.fails()
		var failed *ctrlkit.ActionError
		if !errors.Is(err, errFirst) || !errors.As(err, &failed) {
			t.Errorf("got %v", err)
		}
		same(t, "builds of the workflow", i+1, w.thing().Status.Size)
	}
	began, ended := recorded[journal.ActionBegan](w), recorded[journal.ActionEnded](w)
	if len(began) != 6 || len(ended) != 6 {
		t.Fatalf("the journal has %d and %d actions, want 6", len(began), len(ended))
	}
	same(t, "began", journal.ActionBegan{Step: "Run", Action: "good"}, began[0])
	if o := ended[1].Outcome; !errors.Is(o.Err, errFirst) || o.Class != "TemporaryError" {
		t.Errorf("the outcome of the bad action: %+v", o)
	}
	same(t, "waits", []journal.Wait{{For: "Secret default/db"}}, ended[2].Outcome.Waits)
	w.remove(newThing())
	w.must()
	same(t, "the object", nil, w.thing())
}

// Two steps that wait for each other pass only if they run at the same time. Run it with -race.
func TestGroupRunsAtTheSameTime(t *testing.T) {
	for _, phase := range []string{"Do", "Cleanup"} {
		runInBubble(t, phase, func(t *testing.T) {
			obj, work := newThing(), 0
			if phase == "Cleanup" {
				obj = deletedThing(finalizer)
			}
			w := newWorld(t, obj)
			met := make(chan struct{})
			key := step.NewKey[int]("size")
			a := does(func(ctx context.Context, req *request) {
				met <- struct{}{}
				req.Object.Status.Size = 3
				req.Conditions.MarkHealthy("A", "Fine", "")
				step.Put(req, key, 1)
				_ = req.Client.Get(ctx, thingRequest.NamespacedName, &Thing{})
			})
			b := does(func(ctx context.Context, req *request) {
				<-met
				req.Object.Status.Counters = map[string]int{"b": 1}
				req.Conditions.MarkUnhealthy("B", condition.SeverityInfo, "Slow", "it is slow")
				step.Lookup(req, key)
				_ = req.Client.Get(ctx, thingRequest.NamespacedName, &Thing{})
			})
			w.engine(step.Group("g",
				step.Step[*Thing]{Name: "A", Do: a, Cleanup: a, Conditions: []condition.Declaration{{Type: "A"}}},
				step.Step[*Thing]{Name: "B", Do: b, Cleanup: b, Conditions: []condition.Declaration{{Type: "B"}}},
			), doing("C", does(func(context.Context, *request) { work++ })))
			w.must()
			if phase == "Cleanup" {
				return
			}
			if got := w.thing().Status; got.Size != 3 || got.Counters["b"] != 1 || work != 1 {
				t.Errorf("got status %+v, and what follows ran %d times", got, work)
			}
			if a, b := w.conditionOf("A"), w.conditionOf("B"); a != "True Fine" || b != "False Slow: it is slow" {
				t.Errorf("conditions %q and %q", a, b)
			}
		})
	}
}

// The journal says which step has read and written what, also when several run.
func TestGroupInTheJournal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var steps []step.Step[*Thing]
		for _, name := range []string{"a", "b", "c"} {
			steps = append(steps, doing(name, func(ctx context.Context, req *request) error {
				pass(time.Second) // all have begun
				return req.Client.Create(ctx, configMap(name, nil))
			}))
		}
		w.engine(step.Group("g", steps...))
		w.must()
		var began []string
		for _, e := range recorded[journal.StepBegan](w) {
			began = append(began, e.Step)
		}
		same(t, "begun", []string{"a", "b", "c"}, began)
		writes := 0
		for _, e := range recorded[journal.Wrote](w) {
			if e.Object.Kind == "ConfigMap" {
				writes++
				same(t, "Step", e.Object.Name, e.Step)
			}
		}
		same(t, "writes", 3, writes)
	})
}

// What the steps of a group return is joined in the order given, whichever ends first, and a panic
// is the failure of its step alone.
func TestGroupJoinsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		failsLate := func(after time.Duration, text string) doFunc {
			return func(context.Context, *request) error {
				pass(after)
				return errors.New(text)
			}
		}
		passed := false
		w.engine(step.Group("g", doing("A", failsLate(2*time.Second, "one")), doing("B", failsLate(time.Second, "two")),
			doing("P", func(context.Context, *request) error { panic("bug") }),
			doing("D", does(func(context.Context, *request) { passed = true }))))
		got := w.fails().Error()
		if !passed || !ordered(got, "A: one", "B: two", "P: ") {
			t.Errorf("got %q, and the step that passes ran: %t", got, passed)
		}
	})
}

func ordered(text string, parts ...string) bool {
	for _, part := range parts {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i:]
	}
	return true
}

// Sequences in a group, and a group in a group.
func TestGroupsInside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var log []string
		var mu sync.Mutex
		at := func(name string) step.Step[*Thing] {
			return doing(name, does(func(context.Context, *request) {
				pass(time.Second)
				mu.Lock()
				defer mu.Unlock()
				log = append(log, name)
			}))
		}
		w.engine(step.Group("g", step.When("w", always, at("a"), at("b")), step.Group("h", at("c"), at("d")), step.When("v", never, at("x")), step.GroupOrdered("o", at("e"), at("f"))), at("z"))
		began := time.Now()
		w.must()
		same(t, "time", 3*time.Second, time.Since(began))
		slices.Sort(log)
		same(t, "steps", []string{"a", "b", "c", "d", "e", "f", "z"}, log)
	})
}

// The finalizer is written before the first Do that needs it, while no other step of the group
// runs, also if it is needed only since a step of the group. Run it with -race.
func TestFinalizerInAGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		size := func(req *request) bool { return req.Object.Status.Size > 0 }
		var steps []step.Step[*Thing]
		steps = append(steps, step.When("always", always,
			doing("Size", does(func(_ context.Context, req *request) { req.Object.Status.Size = 1 })),
			step.When("it has a size", size, cleaning("Clean", does(func(_ context.Context, req *request) {
				if !slices.Contains(req.Object.Finalizers, finalizer) {
					t.Error("the object has no finalizer")
				}
			}), passes), cleaning("CleanToo", passes, passes))))
		for _, name := range []string{"a", "b", "c"} {
			steps = append(steps, doing(name, does(func(_ context.Context, req *request) {
				_ = req.Object.ResourceVersion
				_ = len(req.Object.Finalizers) + len(req.Snapshot().Finalizers)
			})))
		}
		w.engine(step.Group("g", steps...))
		w.must()
		if got := w.thing(); got.Status.Size != 1 || !slices.Contains(got.Finalizers, finalizer) {
			t.Errorf("got %+v", got)
		}
	})
}

// No more than 16 run at the same time.
func TestGroupIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var mu sync.Mutex
		running, most := 0, 0
		var steps []step.Step[*Thing]
		for i := range 40 {
			steps = append(steps, doing(fmt.Sprint(i), does(func(context.Context, *request) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				pass(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
			})))
		}
		w.engine(step.Group("g", steps...))
		w.must()
		same(t, "steps at the same time", 16, most)
	})
}

// A group ends when the context does: what was not begun is not.
func TestGroupIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		ctx, cancel := context.WithCancel(t.Context())
		var begun atomic.Int32
		var steps []step.Step[*Thing]
		for i := range 20 {
			steps = append(steps, doing(fmt.Sprint(i), func(ctx context.Context, _ *request) error {
				begun.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}))
		}
		e := w.engine(step.Group("g", steps...))
		time.AfterFunc(time.Second, cancel)
		if _, err := e.Reconcile(ctx, thingRequest); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
		same(t, "steps were begun", 16, begun.Load())
	})
}

// Actions of a workflow that run at the same time use the request. Run it with -race.
func TestRequestInAParallelWorkflow(t *testing.T) {
	w := newWorld(t, newThing())
	key := step.NewKey[int]("n")
	w.engine(keeping("Run", func(ctx context.Context, req *request) error {
		return step.Workflow(func(req *request) ctrlkit.Action {
			var actions []ctrlkit.Action
			for i := range 10 {
				actions = append(actions, ctrlkit.NewAction(fmt.Sprint(i), func(context.Context) (ctrl.Result, error) {
					req.Conditions.MarkHealthy("A", "Fine", "")
					req.Conditions.MarkUnhealthy("B", condition.SeverityInfo, "Slow", "")
					step.Put(req, key, i)
					step.Lookup(req, key)
					return ctrlkit.NoRequeue()
				}))
			}
			return ctrlkit.ParallelJoin(actions...)
		})(ctx, req)
	}, "A", "B"))
	w.must()
	if a, b := w.conditionOf("A"), w.conditionOf("B"); a != "True Fine" || b != "False Slow: Slow" {
		t.Errorf("conditions %q and %q", a, b)
	}
}
