// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// lag has the cache show the Thing as it is now, whatever happens to it.
func (w *world) lag() {
	w.tb.Helper()
	w.cache[thingRequest.NamespacedName] = w.thing()
}

// catchUp has the cache show what the server has.
func (w *world) catchUp() { clear(w.cache) }

func TestAStaleCache(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		runs := 0
		w.engine(doing("A", changing(func(obj *Thing) {
			runs++
			obj.Status.Size = 7
		})))
		w.lag()
		w.must()
		for range 3 {
			same(t, "requeued after", time.Second, w.must().RequeueAfter)
			w.ended(journal.ResultStale)
			pass(time.Second)
		}
		same(t, "runs", 1, runs)
		w.takeWrites()
		w.catchUp()
		w.must()
		same(t, "runs", 2, runs)
		w.wrote()
	})
}

func TestACacheThatStaysStaleIsNotAwaitedForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		runs := 0
		w.engine(doing("A", changing(func(obj *Thing) {
			runs++
			obj.Status.Size = runs
		})))
		w.lag()
		w.must()
		pass(10 * time.Second)
		if w.must(); runs != 1 {
			t.Fatalf("the steps ran %d times within ten seconds", runs)
		}
		pass(time.Nanosecond)
		if err := w.conflicts(); runs != 2 { // the resource version keeps it from doing harm
			t.Errorf("the steps ran %d times: %v", runs, err)
		}
		same(t, "status.size", 1, w.thing().Status.Size)
	})
}

func TestACacheThatDoesNotKnowThatTheObjectIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, deletedThing(finalizer))
		var log []string
		w.engine(full(&log, "A", passes, passes, nil))
		w.lag()
		w.must()
		if got := w.must(); w.lastResult() != journal.ResultStale || got.RequeueAfter <= 0 {
			t.Errorf("got %v, %s", got, w.lastResult())
		}
		same(t, "calls", 1, count(log, "Cleanup A"))
		pass(11 * time.Second)
		_, _ = w.reconcile() // to clean up again does no harm
		w.catchUp()
		w.must()
		w.ended(journal.ResultGone)
	})
}

// A cache is waited for from the write on, however long the reconcile has taken before it.
func TestACacheThatIsStaleAfterALongReconcile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		runs := 0
		w.engine(doing("A", does(func(_ context.Context, req *request) {
			pass(2 * time.Minute)
			runs++
			req.Object.Status.Size++
		})))
		w.lag()
		w.must()
		if got := w.must(); w.lastResult() != journal.ResultStale || got.RequeueAfter <= 0 || runs != 1 {
			t.Errorf("got %v, %s after %d runs, want a wait for the cache", got, w.lastResult(), runs)
		}
	})
}

// Another object of the same name is not one that the cache is stale with.
func TestANewObjectIsNotStale(t *testing.T) {
	w := newWorld(t, newThing())
	runs := 0
	w.engine(doing("A", changing(func(*Thing) { runs++ })))
	w.must()
	w.remove(newThing())
	other := newThing()
	other.UID, other.ResourceVersion = "uid-b", "1"
	w.cache[thingRequest.NamespacedName] = other
	_, _ = w.reconcile()
	same(t, "runs", 2, runs)
}

func TestTimersAndBackoffsAreCauses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		do := again(time.Minute)
		e := w.engine(doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) { return do(ctx, req) }))
		causes := func() string {
			_, _ = w.reconcile()
			started := recorded[journal.Started](w)
			if n := len(started[len(started)-1].Causes); n != 1 {
				t.Errorf("%d causes, want one", n)
				return ""
			}
			return started[len(started)-1].Causes[0].String()
		}
		check := func(want string) {
			t.Helper()
			same(t, "", want, causes())
		}
		check("start")
		pass(time.Second)
		check("unknown") // sooner than it was asked for
		pass(time.Minute)
		do = failsWith(errFirst)
		check("timer")
		pass(e.Limiter().When(thingRequest))
		do = passes
		check("backoff")
		pass(time.Hour)
		check("unknown")
		w.lag()
		do = changing(func(obj *Thing) { obj.Status.Size = 7 })
		check("unknown")
		check("unknown") // stale
		pass(time.Second)
		check("timer")
		w.ended(journal.ResultStale)
	})
}

func TestAFenceKeepsAnOldObjectFromWritingChildren(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		liveEngine(w, doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Create(ctx, configMap("child-"+req.Object.Labels["color"], nil)))
		}))
		w.lag()
		w.edit(func(obj *Thing) { obj.Labels = map[string]string{"color": "blue"} })
		for range 2 {
			requeues(w)
		}
		if got := w.takeWrites(); len(got) != 0 {
			t.Errorf("an old object has written %v", got)
		}
		if got := w.take(&w.live); len(got) != 1 {
			t.Errorf("live reads: %v, want one: from then on the version is known that the cache has to reach", got)
		}
		w.catchUp()
		w.must()
		same(t, "writes", 1, count(w.takeWrites(), "create ConfigMap child-blue"))
		w.take(&w.live)
		for range 5 {
			_, _ = w.reconcile()
		}
		none(t, "live reads", w.take(&w.live))
		liveEngine(w, doing("A", passes)) // another process
		w.must()
		none(t, "live reads", w.take(&w.live))
	})
}

// A step that ignores the wait of the fence does not make a stale object idle.
func TestAStepThatIgnoresTheFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		options := w.options()
		options.APIReader, options.SkipUnchanged = w.liveReader(), true
		runs := 0
		w.engineWith(options, doing("A", does(func(ctx context.Context, req *request) {
			runs++
			_ = req.Client.Create(ctx, configMap("child", nil))
		})))
		w.lag()
		w.edit(func(obj *Thing) { obj.Labels = map[string]string{"color": "blue"} })
		for range 3 {
			requeues(w)
		}
		same(t, "runs", 3, runs)
		w.wrote()
	})
}

func TestTheFenceOfAnObjectThatIsGone(t *testing.T) {
	w := newWorld(t, newThing())
	liveEngine(w, doing("A", tries(func(ctx context.Context, req *request) error {
		return req.Client.Create(ctx, configMap("child", nil))
	})))
	w.lag()
	w.remove(newThing())
	_, _ = w.reconcile()
	same(t, "count", 0, count(w.takeWrites(), "create ConfigMap child"))
}

func TestTheFenceCantAsk(t *testing.T) {
	w := newWorld(t, newThing())
	w.fault = failOn("live get", errFirst)
	liveEngine(w, doing("A", tries(func(ctx context.Context, req *request) error {
		return req.Client.Create(ctx, configMap("child", nil))
	})))
	w.fails()
	same(t, "writes", 0, count(w.takeWrites(), "create ConfigMap child"))
	w.fault = nil
	w.must()
}

// The write of the finalizer shows that the object is the newest.
func TestTheFinalizerIsAFence(t *testing.T) {
	w := newWorld(t, newThing())
	liveEngine(w, cleaning("A", tries(func(ctx context.Context, req *request) error {
		return req.Client.Create(ctx, configMap("child", nil))
	}), passes))
	w.must()
	none(t, "live reads", w.take(&w.live))
}

// Actions of a workflow may pass the fence beside one another.
func TestTheFenceIsSafeForConcurrentUse(t *testing.T) {
	w := newWorld(t, newThing())
	options := w.options()
	options.APIReader, options.SkipUnchanged = w.liveReader(), true
	w.engineWith(options, step.Workflow("A", func(req *request) ctrlkit.Action {
		var actions []ctrlkit.Action
		for _, name := range []string{"one", "two", "three", "four"} {
			actions = append(actions, ctrlkit.NewAction(name, func(ctx context.Context) (ctrl.Result, error) {
				_ = req.Client.Get(ctx, thingRequest.NamespacedName, &Thing{})
				return ctrlkit.RequeueIfError(req.Client.Create(ctx, configMap(name, nil)))
			}))
		}
		return ctrlkit.ParallelJoin(actions...)
	}))
	w.must()
	same(t, "writes", 5, len(w.takeWrites()))
}
