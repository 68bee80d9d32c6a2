// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// What NamedBy indexes are objects of the kind of the handler, also if its steps watch children.
func TestNamedByBesideChildren(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		project := newProject("a")
		project.Spec.Secret = "s"
		w.create(project)
		children := apply.Children("Copy", func(ctx context.Context, req *step.Request[*Project], want *apply.Set) error {
			var secret corev1.Secret
			if err := req.Client.Get(ctx, key(req.Object.Spec.Secret), &secret); err != nil {
				return client.IgnoreNotFound(err)
			}
			want.Add(newConfigMap("copy", nil))
			return nil
		}, apply.Owns(&corev1.ConfigMap{}))
		w.register(handlers.Steps("copy", handlers.StepsOptions[*Project]{Related: []step.Watch{
			step.WatchNamed(&corev1.Secret{}, func(p *Project) []client.ObjectKey { return []client.ObjectKey{{Name: p.Spec.Secret}} }),
		}}, children))
		w.start()
		w.create(newSecret("s"))
		w.settle()
		w.must(w.user.Get(w.ctx, key("copy"), &corev1.ConfigMap{}))
	})
}

// A panic outside of the steps of an engine fails this handler, which is tried again, and no other.
func TestPanicOfAnEngine(t *testing.T) {
	var panics atomic.Int32
	panicking := func(o *handlers.Options) {
		o.Observers = slices.Insert(o.Observers, 0, journal.Observer(observerFunc(func(e journal.Entry) {
			if _, ok := e.Event.(journal.Started); ok && e.Controller == "test-project-one" && panics.Add(1) == 1 {
				panic("out of luck")
			}
		})))
	}
	inWorld(t, panicking, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		w.create(newProject("a"))
		observe := func(name string) func(context.Context, *Project) error {
			return func(_ context.Context, p *Project) error {
				w.call(name + ":" + p.Name)
				return nil
			}
		}
		w.register(handlers.Status("one", "One", observe("one")), handlers.Status("two", "Two", observe("two")))
		w.start()
		time.Sleep(time.Minute)
		calls := w.takeCalls()
		if !contains(calls, "one:a") || !contains(calls, "two:a") {
			t.Errorf("called %q, want both handlers", calls)
		}
	})
}

type observerFunc func(e journal.Entry)

// Observe implements [journal.Observer].
func (f observerFunc) Observe(_ context.Context, e journal.Entry) { f(e) }
