// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestHandlerStopsItself(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		var r *handlers.Registration
		once := w.noting("once")
		once.OnChange = func(ctx context.Context, _ *corev1.ConfigMap) error {
			w.call("once")
			w.must(r.Stop(ctx))
			time.Sleep(time.Second)
			return ctx.Err()
		}
		r = w.register(once)
		w.start()
		time.Sleep(2 * time.Second)
		w.touch(newConfigMap("a", nil))
		w.settle()
		w.expect("after a change", "once")
	})
}

func TestKindThatIsMissing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		gone := false
		w.register(w.noting("map"), handlers.Handler[*unstructured.Unstructured]{
			Name: "widget", Kind: projectKind.GroupVersion().WithKind("Widget"),
			OnChange: func(_ context.Context, obj *unstructured.Unstructured) error {
				w.call("widget:" + obj.GetName())
				return nil
			},
			OnGone: func(_ context.Context, name client.ObjectKey) error {
				if !gone { // that the kind disappears may be seen twice
					w.call("gone:" + name.Name)
				}
				gone = true
				return nil
			},
		})
		w.start()
		w.expect("at the start", "map:a")
		if got := w.state("Widget"); !strings.HasPrefix(got, "Waiting: the API server does not have the kind") {
			t.Errorf("the missing kind is %q", got)
		}
		if err := w.registry.Ready(nil); err == nil || !strings.Contains(err.Error(), "Widget.example.com: waiting: ") {
			t.Errorf("Ready: %v", err)
		}
		if got := w.explain("Widget", "x"); !strings.Contains(got, "its kind is not watched: the API server does not have the kind: install its CustomResourceDefinition") {
			t.Errorf("explain: %q", got)
		}
		for range 2 { // the second time it comes back
			w.must(w.server.Install(definitionOf("Widget")))
			w.create(newUnstructured(projectKind.GroupVersion().WithKind("Widget"), "x"))
			time.Sleep(10 * time.Second)
			w.expect("after the definition is there", "widget:x")
			gone = false
			if got := w.state("Widget"); got != "Running" {
				t.Errorf("it is %q, want Running", got)
			}
			w.must(w.registry.Ready(nil))
			w.uninstall("Widget")
			time.Sleep(time.Minute)
			w.expect("after the definition is gone", "gone:x")
			if got := w.state("Widget"); !strings.HasPrefix(got, "Waiting") {
				t.Errorf("it is %q, want Waiting", got)
			}
			w.touch(newConfigMap("a", nil))
			w.settle()
			w.expect("other kinds", "map:a")
		}
	})
}

// After the last handler is gone, nothing of its kind is left: neither goroutines nor objects.
func TestNothingIsLeftOfAKind(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		w.start()
		before, _ := goroutines()
		for range 3 {
			one := w.noting("one")
			one.Related = []step.Watch{step.WatchOwned(&corev1.Secret{})}
			r := w.register(one, w.noting("two"))
			w.settle()
			w.expect("for a new handler", "one:a, two:a")
			w.must(r.Stop(w.ctx))
			w.settle()
			if now, stacks := goroutines(); now > before {
				t.Fatalf("%d goroutines, before there were %d:\n%s", now, before, stacks)
			}
		}
	})
}

// goroutines returns how many goroutines the bubble has, and their stacks. Others of the process,
// such as those of earlier tests that are about to end, do not count.
func goroutines() (int, string) {
	synctest.Wait()
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	return strings.Count(stacks, ", synctest bubble "), stacks
}

// An informer that an ordinary controller uses, too, stays.
func TestInformersOfOthersStay(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		r := w.register(w.noting("one"))
		w.start()
		informer, err := w.mgr.GetCache().GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		w.must(r.Stop(w.ctx))
		w.settle()
		if informer.IsStopped() {
			t.Error("the informer is stopped, although another one has requested it")
		}
	})
}
