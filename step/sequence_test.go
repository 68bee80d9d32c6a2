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
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// Whatever the steps return, in any order and nesting: at most one patch of the metadata besides
// that of the finalizer, and one of the status, every cause in the error, Post of every step, the
// finalizer before any Do, and the object goes when, and only when, its cleanup has passed.
func TestAnySequenceOfOutcomes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := &sequence{rt: rt, deleted: rapid.Bool().Draw(rt, "deleted")}
		obj := newThing()
		if s.deleted {
			obj = deletedThing(finalizer)
		}
		s.world = newWorld(rt, obj)
		steps := s.steps(0, "")
		s.world.engine(steps...)
		for range rapid.IntRange(1, 3).Draw(rt, "reconciles") {
			s.reconcile()
		}
	})
}

// A sequence is steps with random outcomes, and what was seen of them in a reconcile.
type sequence struct {
	rt      *rapid.T
	world   *world
	deleted bool
	all     int  // steps
	cleans  bool // one of them is a Cleaner

	// What will happen is drawn before each reconcile: the engine would catch the panics by which
	// rapid ends a run.
	draws    []func()
	outcomes map[string]string
	changes  map[string]bool

	causes   []error
	panicked bool
	waited   bool
	posts    []string
	stopped  bool // a cleanup did not pass
}

func (s *sequence) steps(depth int, prefix string) []step.Step[*Thing] {
	var steps []step.Step[*Thing]
	for i := range rapid.IntRange(1, 3).Draw(s.rt, "steps") {
		name := fmt.Sprint(prefix, i)
		kinds := []string{"plain", "cleaner"}
		if depth < 2 {
			kinds = append(kinds, "group", "when", "never")
		}
		switch kind := rapid.SampledFrom(kinds).Draw(s.rt, name); kind {
		case "group":
			steps = append(steps, step.GroupOrdered(name, s.steps(depth+1, name+".")...)) // they change the same fields
		case "when":
			steps = append(steps, step.When(name, always, s.steps(depth+1, name+".")...))
		case "never":
			cleans := s.cleans
			steps = append(steps, step.When(name, never, s.steps(depth+1, name+".")...))
			s.cleans = cleans || s.deleted && s.cleans
		default:
			s.all++
			s.draws = append(s.draws, func() {
				s.outcomes["Do "+name] = rapid.SampledFrom([]string{"ok", "ok", "ok", "error", "wait", "requeue", "again", "panic"}).Draw(s.rt, "Do "+name)
				s.outcomes["Cleanup "+name] = rapid.SampledFrom([]string{"ok", "ok", "ok", "error", "wait", "requeue", "panic"}).Draw(s.rt, "Cleanup "+name)
				s.outcomes["Post "+name] = rapid.SampledFrom([]string{"ok", "ok", "error", "panic"}).Draw(s.rt, "Post "+name)
				s.changes["status "+name] = rapid.Bool().Draw(s.rt, name+" changes the status")
				s.changes["metadata "+name] = rapid.Bool().Draw(s.rt, name+" changes the metadata")
			})
			post := func(context.Context, *request) error {
				s.posts = append(s.posts, name)
				return s.outcome("Post " + name)
			}
			do := func(_ context.Context, req *request) error {
				if s.cleans && !slices.Contains(s.world.thing().Finalizers, finalizer) {
					s.rt.Error("a Do before the finalizer")
				}
				s.change(name, req.Object)
				return s.outcome("Do " + name)
			}
			cleanup := func(_ context.Context, req *request) error {
				s.change(name, req.Object)
				err := s.outcome("Cleanup " + name)
				s.stopped = s.stopped || err != nil
				return err
			}
			if kind == "plain" {
				steps = append(steps, step.Step[*Thing]{Name: name, Do: do, Post: post})
				continue
			}
			s.cleans = true
			steps = append(steps, step.Step[*Thing]{Name: name, Do: do, Cleanup: cleanup, Post: post})
		}
	}
	return steps
}

func (s *sequence) change(name string, obj *Thing) {
	if s.changes["status "+name] {
		obj.Status.Size++
	}
	if s.changes["metadata "+name] {
		obj.Annotations = map[string]string{"n": fmt.Sprint(len(obj.Annotations["n"]), obj.ResourceVersion)}
	}
}

func (s *sequence) outcome(what string) error {
	switch s.outcomes[what] {
	case "error":
		err := errors.New(what)
		s.causes = append(s.causes, err)
		return err
	case "panic":
		err := errors.New(what)
		s.causes, s.panicked, s.stopped = append(s.causes, err), true, s.stopped || strings.HasPrefix(what, "Cleanup")
		panic(err)
	case "wait":
		s.waited = true
		return ctrlkit.Wait(what)
	case "requeue":
		return ctrlkit.AsError(ctrlkit.RequeueAfter(time.Minute))
	case "again":
		return ctrlkit.RequeueWithin(time.Minute)
	default:
		return nil
	}
}

func (s *sequence) reconcile() {
	if s.world.thing() == nil {
		return
	}
	s.outcomes, s.changes = make(map[string]string), make(map[string]bool)
	for _, draw := range s.draws {
		draw()
	}
	s.causes, s.posts, s.panicked, s.waited, s.stopped = nil, nil, false, false, false
	s.world.takeWrites()
	mostMetadata := 1
	if s.cleans && !slices.Contains(s.world.thing().Finalizers, finalizer) {
		mostMetadata = 2 // the finalizer, and what the steps have changed
	}
	result, err := s.world.reconcile()
	if s.world.lastResult() == journal.ResultWaiting && len(s.posts) == 0 {
		return // it is slowed down
	}
	for _, cause := range s.causes {
		if !errors.Is(err, cause) {
			s.rt.Errorf("%v is not in the error: %v", cause, err)
		}
	}
	if len(s.causes) == 0 && err != nil {
		s.rt.Errorf("nothing has failed, and the error is %v", err)
	}
	if err != nil && result != (reconcile.Result{}) {
		s.rt.Errorf("a result beside an error: %v", result)
	}
	var panicked *ctrlkit.PanicError
	if s.panicked != errors.As(err, &panicked) {
		s.rt.Errorf("panicked: %v, error: %v", s.panicked, err)
	}
	writes := s.world.takeWrites()
	if count(writes, "patch Thing a") > mostMetadata || count(writes, "patch status of Thing a") > 1 || len(writes) > mostMetadata+1 {
		s.rt.Errorf("writes: %v", writes)
	}
	if len(s.posts) != s.all || !slices.IsSorted(s.posts) {
		s.rt.Errorf("Post was called for %v, of %d steps", s.posts, s.all)
	}
	if s.deleted && s.cleans {
		if gone := s.world.thing() == nil; gone == s.stopped {
			s.rt.Errorf("the object is gone: %v, a cleanup did not pass: %v", gone, s.stopped)
		}
		return
	}
	ready := s.world.conditionOf(condition.Ready)
	if bad := len(s.causes) > 0 || s.waited; !s.deleted && bad != strings.HasPrefix(ready, "False ") && !strings.Contains(ready, "wants to be run again") {
		s.rt.Errorf("Ready is %q; failures %v, waits %v", ready, s.causes, s.waited)
	}
}
