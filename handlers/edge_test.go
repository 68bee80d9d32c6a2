// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// A kind that is running because it is related gets its first handler, which is called once for
// each object.
func TestFirstHandlerOfARunningKind(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		const objects = 300
		for i := range objects {
			w.create(newConfigMap(fmt.Sprint("a", i), nil))
		}
		w.register(handlers.Handler[*corev1.Secret]{Name: "related", Related: []step.Watch{step.WatchOwned(&corev1.ConfigMap{})},
			OnChange: func(context.Context, *corev1.Secret) error { return nil }})
		w.start()
		w.register(w.noting("one"))
		w.settle()
		if calls := strings.Count(w.takeCalls(), "one:"); calls != objects {
			t.Errorf("%d calls for %d objects", calls, objects)
		}
	})
}

// The events of what steps watch do not reach the index of Related, which knows another type.
func TestRelatedBesideWatchesOfSteps(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		w.create(newProject("a"))
		w.register(handlers.Steps("one", handlers.StepsOptions[*Project]{
			Related: []step.Watch{step.WatchNamed(&corev1.Secret{}, func(p *Project) []client.ObjectKey { return []client.ObjectKey{{Name: "s"}} })},
		}, watching(w, step.Watch{Object: &corev1.ConfigMap{}, Owned: true})))
		w.start()
		w.expect("at the start", "one:a")
		w.create(newConfigMap("c", nil), newSecret("s"))
		w.settle()
		w.expect("after what it names was created", "one:a")
	})
}

// A function of a handler that panics fails this handler only.
func TestPanicsOfFunctions(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		selecting, relating := w.noting("selecting"), w.noting("relating")
		var healed atomic.Bool
		selecting.Selects = func(obj *corev1.ConfigMap) bool {
			if !healed.Load() {
				panic("no labels")
			}
			return true
		}
		relating.Related = []step.Watch{
			step.WatchMapped(&corev1.Secret{}, func(*corev1.Secret) []client.ObjectKey { panic("no owner") }),
			step.WatchNamed(&corev1.Secret{}, func(*corev1.ConfigMap) []client.ObjectKey { panic("no names") }),
		}
		w.register(selecting, relating, w.noting("other"))
		w.start()
		w.expect("at the start", "other:a, relating:a")
		w.create(newSecret("s"))
		w.settle()
		healed.Store(true)
		time.Sleep(time.Hour)
		w.expect("after it does not panic any more", "selecting:a")
		time.Sleep(time.Hour)
		w.expect("later", "")
	})
}

// Handlers that would share a field owner, a finalizer or conditions are refused.
func TestCollisionsAreRefused(t *testing.T) {
	none := func(context.Context, *Project) error { return nil }
	removing := func(name, finalizer string) handlers.Entry {
		return handlers.Handler[*Project]{Name: name, Finalizer: finalizer, OnRemove: none}
	}
	complete := func(name string) handlers.Entry {
		return handlers.Steps(name, handlers.StepsOptions[*Project]{Complete: true}, step.Step[*Project]{Name: "a", Do: func(context.Context, *step.Request[*Project]) error { return nil }})
	}
	for _, test := range []struct {
		name     string
		one, two handlers.Entry
		want     string // empty if both can be registered
	}{
		{"a name", removing("a", ""), removing("a", ""), "Project.example.com already has a handler of that name"},
		{"names of engines", removing("a b", ""), removing("a-b", "example.com/other"), `its engine has the name of that of handler "a b", "test-project-a-b"`},
		{"finalizers", removing("a", "example.com/x"), removing("b", "example.com/x"), `handler "a" has the finalizer "example.com/x", too`},
		{"conditions", complete("a"), complete("b"), `handler "a" is Complete, too`},
		{"other names", removing("a", ""), removing("b", ""), ""},
		{"a plain handler of a similar name", removing("a b", ""), handlers.Handler[*Project]{Name: "a-b", OnChange: none}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, together := range []bool{true, false} {
				inWorld(t, nil, func(w *world) {
					var err error
					if together {
						_, err = w.registry.Register(test.one, test.two)
					} else {
						w.register(test.one)
						_, err = w.registry.Register(test.two)
					}
					if test.want == "" && err != nil || test.want != "" && (err == nil || !contains(err.Error(), test.want)) {
						t.Errorf("%v, want %q", err, test.want)
					}
				})
			}
		})
	}
}

// A manager may have two registries, which share its cache. Both notice that a kind disappears.
func TestTwoRegistriesOfOneManager(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		if _, err := handlers.New(w.mgr, handlers.Options{Name: "test"}); err == nil || !contains(err.Error(), `already has a registry "test"`) {
			t.Errorf("two registries of one name: %v", err)
		}
		other, err := handlers.New(w.mgr, handlers.Options{Name: "other"})
		w.must(err)
		w.must(w.server.Install(definitionOf("Project")))
		w.create(newProject("a"), newConfigMap("a", nil))
		handler := func(name string) handlers.Entry {
			return handlers.Handler[*Project]{Name: name,
				OnChange: func(_ context.Context, obj *Project) error {
					w.call(name + ":" + obj.Name)
					return nil
				},
				OnGone: func(_ context.Context, key client.ObjectKey) error {
					w.call(name + " gone:" + key.Name)
					return nil
				},
			}
		}
		w.register(handler("one"), w.noting("map of one"))
		second, err := other.Register(handler("two"), w.noting("map of two"))
		w.must(err)
		w.start()
		w.expect("at the start", "map of one:a, map of two:a, one:a, two:a")
		w.uninstall("Project")
		time.Sleep(time.Minute)
		if got := w.takeCalls(); !contains(got, "one gone:a") || !contains(got, "two gone:a") {
			t.Errorf("after the kind has disappeared: %q", got)
		}
		w.must(second.Stop(w.ctx))
		w.touch(newConfigMap("a", nil))
		w.settle()
		w.expect("after the handlers of the second one are stopped", "map of one:a")
	})
}

// A limited kind gets a new handler while the one before it, which was the last one, still runs.
func TestLimitedKindIsUsedAgainAtOnce(t *testing.T) {
	limit := func(o *handlers.Options) { o.Default.Labels = klabels.SelectorFromSet(klabels.Set{"app": "x"}) }
	inWorld(t, limit, func(w *world) {
		w.create(newConfigMap("a", map[string]string{"app": "x"}), newConfigMap("b", nil))
		slow := w.noting("slow")
		slow.OnChange = func(context.Context, *corev1.ConfigMap) error {
			time.Sleep(time.Minute)
			return nil
		}
		r := w.register(slow)
		w.start()
		soon, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_ = r.Stop(soon)
		w.register(w.noting("next"))
		w.settle()
		w.expect("for the next handler", "next:a")
		time.Sleep(2 * time.Minute)
		all, err := handlers.KindOf[*corev1.ConfigMap](w.registry).List(w.ctx)
		w.must(err)
		if len(all) != 1 {
			t.Errorf("%d objects in the cache, want the selected one", len(all))
		}
	})
}

// Stop, Register and the end of the manager come in any order.
func TestOrderOfStartAndStop(t *testing.T) {
	t.Run("stopped during the start", func(t *testing.T) {
		inWorld(t, nil, func(w *world) {
			w.create(newConfigMap("a", nil))
			r := w.register(w.noting("one"))
			stopped := make(chan error)
			go func() { stopped <- r.Stop(w.ctx) }()
			w.start()
			w.must(<-stopped)
			w.takeCalls()
			w.touch(newConfigMap("a", nil))
			w.settle()
			w.expect("after Stop", "")
		})
	})
	t.Run("registered during the end", func(t *testing.T) {
		inWorld(t, nil, func(w *world) {
			w.create(newConfigMap("a", nil))
			one := w.noting("one")
			one.OnChange = func(ctx context.Context, _ *corev1.ConfigMap) error {
				<-ctx.Done()
				r, err := w.registry.Register(w.noting("two"), handlers.Handler[*corev1.Secret]{Name: "late",
					OnChange: func(context.Context, *corev1.Secret) error { return nil }})
				if err == nil {
					err = r.Stop(ctx)
				}
				if err != nil && !errors.Is(err, context.Canceled) && !contains(err.Error(), "has stopped") {
					t.Error(err)
				}
				return nil
			}
			w.register(one)
			w.start()
			w.stop()
		})
	})
}

// A kind disappears while its last handler is stopped, and comes and goes faster than it is looked
// for.
func TestFlappingKind(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for i := range 6 {
			w.must(w.server.Install(definitionOf("Project")))
			r := w.register(handlers.Handler[*Project]{Name: "one", OnChange: func(_ context.Context, obj *Project) error {
				w.call("one:" + obj.Name)
				return nil
			}})
			if w.stop == nil {
				w.start()
			}
			w.create(newProject("a"))
			time.Sleep(10 * time.Second)
			w.expect("after the kind has come", "one:a")
			w.uninstall("Project")
			time.Sleep(time.Duration(i) * time.Second)
			if i%2 == 0 {
				w.must(w.server.Install(definitionOf("Project")))
				w.create(newProject("b"))
				time.Sleep(2 * time.Minute)
				// An informer that had not noticed may have shown it before the next one did: all
				// objects are new to a handler when their kind comes back.
				if got := w.takeCalls(); got != "one:b" && got != "one:b, one:b" {
					t.Errorf("after it has come back: called %q, want one:b, once or twice", got)
				}
				w.uninstall("Project")
			}
			w.must(r.Stop(w.ctx))
			time.Sleep(time.Minute)
		}
	})
}
