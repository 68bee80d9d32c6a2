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

func TestTimersAndBackoffsAreCauses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		do := again(time.Minute)
		e := w.engine(doing("A", func(ctx context.Context, req *request) error { return do(ctx, req) }))
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

// Actions of a workflow may pass the fence beside one another.
func TestTheFenceIsSafeForConcurrentUse(t *testing.T) {
	w := newWorld(t, newThing())
	options := w.options()
	options.APIReader, options.SkipUnchanged = w.liveReader(), true
	w.engineWith(options, step.Step[*Thing]{Name: "A", Do: step.Workflow(func(req *request) ctrlkit.Action {
		var actions []ctrlkit.Action
		for _, name := range []string{"one", "two", "three", "four"} {
			actions = append(actions, ctrlkit.NewAction(name, func(ctx context.Context) (ctrl.Result, error) {
				_ = req.Client.Get(ctx, thingRequest.NamespacedName, &Thing{})
				return ctrlkit.RequeueIfError(req.Client.Create(ctx, configMap(name, nil)))
			}))
		}
		return ctrlkit.ParallelJoin(actions...)
	})})
	w.must()
	same(t, "writes", 5, len(w.takeWrites()))
}
