// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
)

func TestHandlersAreCalledForChanges(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		one := w.noting("one")
		one.OnGone = func(_ context.Context, name client.ObjectKey) (ctrl.Result, error) {
			w.call("one gone:" + name.Name)
			return ctrl.Result{}, nil
		}
		w.register(one, w.noting("two"))
		w.start()
		w.expect("at the start", "one:a, two:a")
		w.create(newConfigMap("b", nil))
		w.settle()
		w.expect("after a creation", "one:b, two:b")
		w.touch(newConfigMap("a", nil))
		w.settle()
		w.expect("after a change", "one:a, two:a")
		w.must(w.user.Delete(w.ctx, newConfigMap("a", nil)))
		w.settle()
		w.expect("after a deletion", "one gone:a")
		w.register(w.noting("late"))
		w.settle()
		w.expect("for a handler that is registered later", "late:b")
		time.Sleep(time.Hour)
		w.expect("an hour later", "")
	})
}

func TestOneFailureDoesNotRerunOthers(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		tries := 0
		failing := w.noting("failing")
		failing.OnChange = func(context.Context, *corev1.ConfigMap) (ctrl.Result, error) {
			if tries++; tries <= 3 {
				return ctrl.Result{}, errors.New("not yet")
			}
			return ctrl.Result{}, nil
		}
		w.register(failing, w.noting("fine"))
		w.start()
		time.Sleep(time.Minute)
		w.expect("after a minute", "fine:a")
		if tries != 4 {
			t.Errorf("%d tries, want 4", tries)
		}
	})
}

func TestTimesBelongToOneHandler(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		poll := w.noting("poll")
		poll.OnChange = func(context.Context, *corev1.ConfigMap) (ctrl.Result, error) {
			w.call("poll")
			return ctrl.Result{RequeueAfter: time.Minute}, nil
		}
		w.register(poll, w.noting("other"))
		w.start()
		w.expect("at the start", "other:a, poll")
		time.Sleep(3 * time.Minute)
		w.expect("after three minutes", "poll, poll, poll")
		time.Sleep(30 * time.Second)
		w.touch(newConfigMap("a", nil))
		w.settle()
		w.expect("after a change", "other:a, poll")
		time.Sleep(59 * time.Second)
		w.expect("within a minute of that", "")
		time.Sleep(time.Second)
		w.expect("a minute after that", "poll")
	})
}

func TestPausedObjectsAreLeftAlone(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a := newConfigMap("a", nil)
		a.Annotations = map[string]string{"ctrlkit.dev/paused": "true"}
		w.create(a, newConfigMap("b", nil))
		w.register(w.noting("one"))
		w.start()
		w.expect("while one is paused", "one:b")
		delete(a.Annotations, "ctrlkit.dev/paused")
		w.must(w.user.Update(w.ctx, a))
		w.settle()
		w.expect("after the annotation is removed", "one:a")
	})
}

func TestSelectedObjects(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", map[string]string{"app": "x"}), newConfigMap("b", nil))
		one := w.noting("one")
		one.Selects = func(obj *corev1.ConfigMap) bool { return obj.Labels["app"] != "" }
		w.register(one)
		w.start()
		w.expect("at the start", "one:a")
	})
}

func TestEnqueue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		maps := handlers.KindOf[*corev1.ConfigMap](w.registry)
		if err := maps.Enqueue(key("a")); !errors.Is(err, handlers.ErrNoHandler) {
			t.Errorf("Enqueue without a handler: %v", err)
		}
		w.register(w.noting("one"), w.noting("two"))
		w.start()
		w.takeCalls()
		w.must(maps.Enqueue(key("a"), key("a")))
		w.settle()
		w.expect("after Enqueue", "one:a, two:a")
		w.must(maps.EnqueueAfter(time.Minute, key("a")))
		time.Sleep(59 * time.Second)
		w.expect("before the time", "")
		time.Sleep(time.Second + time.Millisecond)
		w.expect("after the time", "one:a, two:a")
	})
}

func TestResync(t *testing.T) {
	inWorld(t, func(o *handlers.Options) { o.Default.Resync = time.Minute }, func(w *world) {
		w.create(newConfigMap("a", nil))
		wants := w.noting("wants")
		wants.Resync = true
		w.register(wants, w.noting("does not"))
		w.start()
		w.takeCalls()
		time.Sleep(90 * time.Second)
		w.expect("after a resync", "wants:a")
	})
}

func TestMistakesOfRegistrations(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		type unknown struct{ corev1.ConfigMap }
		_, err := w.registry.Register(
			handlers.Handler[*corev1.ConfigMap]{Name: "nothing"},
			handlers.Handler[*unknown]{Name: "kind", OnChange: func(context.Context, *unknown) (ctrl.Result, error) { return ctrl.Result{}, nil }},
			nil,
		)
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{`handler "nothing": it has neither`, `handler "kind"`, "register it with the scheme", "handler 3 is nil"} {
			if !contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if kinds := w.registry.Kinds(); len(kinds) != 0 {
			t.Errorf("kinds %v, want none", kinds)
		}
	})
}

func contains(text, part string) bool { return strings.Contains(text, part) }
