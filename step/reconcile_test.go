// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// A full step notes each of its calls.
func full(log *[]string, name string, do, cleanup doFunc, post error) step.Step[*Thing] {
	return poster{
		cleaner{doing(name, logged(log, "Do "+name, do)), logged(log, "Cleanup "+name, cleanup)},
		func(context.Context, *request) error {
			addTo(log, "Post "+name)
			return post
		},
	}
}

func TestOrder(t *testing.T) {
	tests := []struct {
		name   string
		delete bool
		first  doFunc
		second doFunc
		want   []string
	}{
		{"all pass", false, passes, passes, []string{"Do A", "Do B", "Do C", "Post A", "Post B", "Post C"}},
		{"the second fails", false, passes, failsWith(errSecond), []string{"Do A", "Do B", "Post A", "Post B", "Post C"}},
		{"the first fails", false, failsWith(errFirst), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first waits", false, waits("Secret default/db"), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first wants to be run again", false, again(time.Minute), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first exits", false, failsWith(ctrlkit.ErrExit), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first is requeued", false, continues(time.Minute), passes, []string{"Do A", "Do B", "Do C", "Post A", "Post B", "Post C"}},
		{"the first panics", false, panics("no"), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"deleted", true, passes, passes, []string{"Cleanup C", "Cleanup B", "Cleanup A", "Post A", "Post B", "Post C"}},
		{"deleted, the second fails", true, passes, failsWith(errSecond), []string{"Cleanup C", "Cleanup B", "Post A", "Post B", "Post C"}},
		{"deleted, the second panics", true, passes, panics("no"), []string{"Cleanup C", "Cleanup B", "Post A", "Post B", "Post C"}},
		{"deleted, the second waits", true, passes, waits("the bucket to be empty"), []string{"Cleanup C", "Cleanup B", "Post A", "Post B", "Post C"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newThing()
			if test.delete {
				obj = deletedThing(finalizer)
			}
			w := newWorld(t, obj)
			var log []string
			w.engine(
				full(&log, "A", test.first, test.first, nil),
				full(&log, "B", test.second, test.second, errThird), // an error of a Post ends nothing
				full(&log, "C", passes, passes, nil),
			)
			if err := w.fails(); !errors.Is(err, errThird) {
				t.Errorf("got %v, want the error of the Post in it", err)
			}
			same(t, "calls", test.want, log)
		})
	}
}

func waits(what string) doFunc {
	return func(context.Context, *request) (ctrl.Result, error) { return ctrlkit.WaitFor(what) }
}

func again(d time.Duration) doFunc {
	return func(context.Context, *request) (ctrl.Result, error) { return ctrlkit.RequeueAfter(d) }
}

func continues(d time.Duration) doFunc {
	return func(context.Context, *request) (ctrl.Result, error) {
		return ctrlkit.ContinueAndRequeueAfter(d)
	}
}

func TestPostKnowsWhatFailed(t *testing.T) {
	tests := []struct {
		name string
		do   doFunc
		want error
	}{
		{"nothing", passes, nil},
		{"a failure", failsWith(errFirst), errFirst},
		{"a wait is none", waits("Secret default/db"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			var got error
			w.engine(posting{doing("A", test.do), func(_ context.Context, req *request) error {
				got = req.Failure()
				return nil
			}})
			_, _ = w.reconcile()
			if !errors.Is(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPostHasTimeAfterTheContextIsDone(t *testing.T) {
	w := newWorld(t, newThing())
	ctx, cancel := context.WithCancel(context.Background())
	atPost := errors.New("Post was not called")
	e := w.engine(posting{
		doing("A", func(_ context.Context, req *request) (ctrl.Result, error) {
			req.Object.Status.Size = 7
			cancel()
			return ctrl.Result{}, ctx.Err()
		}),
		func(ctx context.Context, _ *request) error {
			atPost = ctx.Err()
			return nil
		},
	})
	if _, err := e.Reconcile(ctx, thingRequest); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if atPost != nil {
		t.Errorf("the context of Post was done: %v", atPost)
	}
	same(t, "status.size", 7, w.thing().Status.Size)
	w.is(condition.Ready, "")
}

func TestResults(t *testing.T) {
	tests := []struct {
		name  string
		do    doFunc
		want  time.Duration
		how   journal.Result
		fails bool
	}{
		{"done", passes, 0, journal.ResultDone, false},
		{"requeue", continues(time.Minute), time.Minute, journal.ResultDone, false},
		{"wait", waits("Secret default/db"), 0, journal.ResultWaiting, false},
		{"poll", func(context.Context, *request) (ctrl.Result, error) {
			return ctrlkit.PollFor("the bucket", 3*time.Second)
		}, 3 * time.Second, journal.ResultWaiting, false},
		{"exit", failsWith(ctrlkit.ErrExit), 0, journal.ResultDone, false},
		{"deprecated requeue", func(context.Context, *request) (ctrl.Result, error) {
			//lint:ignore SA1019 deprecated upstream, and honored when a step returns it
			return ctrl.Result{Requeue: true}, nil
		}, time.Second, journal.ResultDone, false},
		{"failure", failsWith(errFirst), 0, journal.ResultFailed, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(doing("A", test.do))
			result, err := w.reconcile()
			same(t, "result", reconcile.Result{RequeueAfter: test.want}, result)
			same(t, "error", test.fails, err != nil)
			w.ended(test.how)
		})
	}
}

func TestTheSoonestTimeCounts(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(
		doing("A", continues(time.Hour)),
		step.Group("g", doing("B", continues(time.Minute)), doing("C", continues(time.Second))),
		doing("D", continues(time.Hour)),
	)
	same(t, "", time.Second, w.must().RequeueAfter)
}

func TestGone(t *testing.T) {
	w := newWorld(t)
	var log []string
	w.engine(full(&log, "A", passes, passes, nil))
	same(t, "result", reconcile.Result{}, w.must())
	none(t, "log", log)
	w.ended(journal.ResultGone)
}

func TestTheCacheIsNotChanged(t *testing.T) {
	w := newWorld(t, newThing())
	cached := newThing()
	cached.ResourceVersion = w.thing().ResourceVersion
	cached.Status.Counters = map[string]int{"a": 1}
	w.cache[thingRequest.NamespacedName] = cached
	w.engine(doing("A", does(func(_ context.Context, req *request) {
		req.Object.Status.Counters["a"]++
		req.Object.Labels = map[string]string{"x": "y"}
		same(t, "the snapshot has changed", 1, req.Snapshot().Status.Counters["a"])
	})))
	w.must()
	if cached.Status.Counters["a"] != 1 || cached.Labels != nil {
		t.Errorf("the cached object was changed: %+v", cached)
	}
}

func TestObjectsAreReconciledAtTheSameTime(t *testing.T) {
	var objects []*Thing
	w := newWorld(t)
	for i := range 8 {
		obj := newThing()
		obj.Name, obj.UID = fmt.Sprint("t", i), types.UID(fmt.Sprint("uid-", i))
		w.create(obj)
		objects = append(objects, obj)
	}
	e := w.engine(cleaning("A", does(func(_ context.Context, req *request) { req.Object.Status.Size = len(req.Object.Name) }), passes))
	done := make(chan error)
	for _, obj := range objects {
		go func() {
			request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}}
			_, err := e.Reconcile(context.Background(), request)
			_, again := e.Reconcile(context.Background(), request)
			done <- errors.Join(err, again)
		}()
	}
	for range objects {
		must(t, <-done)
	}
}

func TestTheJournalHasSteps(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(
		doing("A", passes),
		step.When("never", never, doing("B", passes)),
		doing("C", waits("Secret default/db")),
		doing("D", passes),
	)
	w.must()
	var got []string
	for _, entry := range w.entries {
		if text := entry.Event.String(); !strings.HasPrefix(text, "read") {
			got = append(got, text)
		}
	}
	want := []string{
		"started, because of start",
		"Do of A begins", "Do of A done",
		"B is skipped: its condition does not hold",
		"Do of C begins", "Do of C waits for Secret default/db",
		"D is not reached: C did not pass",
		"patch status of Thing default/a (.status.conditions, .status.observedGeneration)",
		"finished: waiting",
	}
	same(t, "journal", want, got)
}
