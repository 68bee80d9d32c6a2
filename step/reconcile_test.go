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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// A full step notes each of its calls.
func full(log *[]string, name string, do, cleanup doFunc, post error) step.Step[*Thing] {
	return step.Step[*Thing]{
		Name: name, Do: logged(log, "Do "+name, do), Cleanup: logged(log, "Cleanup "+name, cleanup),
		Post: func(context.Context, *request) error {
			addTo(log, "Post "+name)
			return post
		},
	}
}

func waits(what string) doFunc {
	return func(context.Context, *request) error { return ctrlkit.Wait(what) }
}

func again(d time.Duration) doFunc {
	return func(context.Context, *request) error { return ctrlkit.AsError(ctrlkit.RequeueAfter(d)) }
}

func TestPostHasTimeAfterTheContextIsDone(t *testing.T) {
	w := newWorld(t, newThing())
	ctx, cancel := context.WithCancel(context.Background())
	atPost := errors.New("Post was not called")
	e := w.engine(step.Step[*Thing]{
		Name: "A",
		Do: func(_ context.Context, req *request) error {
			req.Object.Status.Size = 7
			cancel()
			return ctx.Err()
		},
		Post: func(ctx context.Context, _ *request) error {
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
		"condition Ready became False (Waiting)",
		"finished: waiting",
	}
	same(t, "journal", want, got)
}

// Steps record events, also with what takes a recorder, and an engine without one records none.
func TestEventsOfSteps(t *testing.T) {
	for name, recorder := range map[string]bool{"with a recorder": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newThing())
			options := w.options()
			if !recorder {
				options.Recorder = nil
			}
			w.engineWith(options, doing("Make", does(func(_ context.Context, req *request) {
				req.Event(corev1.EventTypeNormal, "Made", "Make", "%d made", 2)
				if req.Recorder != nil {
					req.Recorder.Eventf(req.Object, req.Object, corev1.EventTypeNormal, "Related", "Make", "made")
				}
			})))
			w.must()
			if recorder {
				same(t, "events", []string{"Made: 2 made", "Related: made"}, w.takeEvents())
			}
		})
	}
}
