// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// withProjects runs a test in a world that has Projects.
func withProjects(t *testing.T, names string, test func(w *world)) {
	t.Helper()
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		for _, name := range strings.Fields(names) {
			w.create(newProject(name))
		}
		test(w)
	})
}

// project returns a Project as the API server has it.
func (w *world) project(name string) *Project {
	w.t.Helper()
	obj := newProject(name)
	w.must(w.user.Get(w.ctx, key(name), obj))
	return obj
}

// conditions returns those of a Project: "Sized=True Observed; ...".
func (w *world) conditions(name string) string {
	w.t.Helper()
	var texts []string
	for _, c := range w.project(name).Status.Conditions {
		texts = append(texts, strings.TrimSuffix(fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message), ": "))
	}
	return strings.Join(texts, "; ")
}

func big(p *Project) bool { return p.Spec.Size > 0 }

// Two status handlers and another writer keep what each of them knows.
func TestStatus(t *testing.T) {
	withProjects(t, "a", func(w *world) {
		secret := step.WatchLabeled(&corev1.Secret{}, "project")
		w.register(
			handlers.Status("size", "Sized", func(_ context.Context, p *Project) error { p.Status.Size = p.Spec.Size; return nil }),
			handlers.Status("secret", "SecretFound", func(ctx context.Context, p *Project) error {
				if err := w.registry.Client().Get(ctx, key("s"), newSecret("s")); apierrors.IsNotFound(err) {
					return ctrlkit.Wait("Secret s")
				} else if err != nil {
					return err
				}
				return nil
			}, secret),
		)
		w.start()
		time.Sleep(time.Minute)
		if got, want := w.conditions("a"), "Sized=True Observed; SecretFound=False Waiting: waits for Secret s"; sorted(got) != sorted(want) {
			t.Errorf("at the start: %q, want %q", got, want)
		}
		a := w.project("a")
		apimeta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{Type: "Other", Status: "True", Reason: "Fine"})
		w.must(w.user.Status().Update(w.ctx, a))
		a.Spec.Size = 7
		w.must(w.user.Update(w.ctx, a))
		s := newSecret("s")
		s.Labels = map[string]string{"project": "a"}
		w.create(s)
		time.Sleep(time.Minute)
		if got, want := w.conditions("a"), "Sized=True Observed; SecretFound=True Observed; Other=True Fine"; sorted(got) != sorted(want) {
			t.Errorf("after changes: %q, want %q", got, want)
		}
		if got := w.project("a").Status.Size; got != 7 {
			t.Errorf("size %d, want 7", got)
		}
		w.takeRequests()
		time.Sleep(24 * time.Hour)
		w.touch(newProject("a"))
		time.Sleep(time.Minute)
		if got := w.takeRequests(); len(got) > 0 {
			t.Errorf("writes of idle objects: %v", got)
		}
	})
}

func sorted(text string) string {
	parts := strings.Split(text, "; ")
	for i := range parts {
		for j := range i {
			if parts[i] < parts[j] {
				parts[i], parts[j] = parts[j], parts[i]
			}
		}
	}
	return strings.Join(parts, "; ")
}

// An error text that changes at each try is no reason for a write at each try.
func TestStatusOfChangingErrors(t *testing.T) {
	withProjects(t, "a", func(w *world) {
		tries := 0
		w.register(handlers.Status("size", "Sized", func(context.Context, *Project) error {
			tries++
			return fmt.Errorf("request %d was refused", tries)
		}))
		w.start()
		time.Sleep(time.Hour)
		if got := w.conditions("a"); !contains(got, "Sized=False") || !contains(got, "was refused") {
			t.Errorf("conditions %q", got)
		}
		if writes := w.takeRequests(); tries < 10 || len(writes) > 10 {
			t.Errorf("%d writes after %d tries", len(writes), tries)
		}
	})
}

// A status that could not be saved is not lost.
func TestStatusOfAWriteThatFails(t *testing.T) {
	withProjects(t, "a", func(w *world) {
		w.register(handlers.Status("size", "Sized", func(_ context.Context, p *Project) error { p.Status.Size = 7; return nil }))
		w.faulty(func(r *http.Request) error {
			if r.Method == http.MethodPatch {
				return errors.New("connection refused")
			}
			return nil
		})
		w.start()
		time.Sleep(time.Minute)
		w.faulty(nil)
		time.Sleep(10 * time.Minute)
		if got := w.conditions("a"); got != "Sized=True Observed" || w.project("a").Status.Size != 7 {
			t.Errorf("conditions %q", got)
		}
	})
}

// A status handler took a conflict for success.
func TestFieldConflictIsSuccess(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "projects"}, "a", errors.New("changed"))
	for _, naively := range []bool{false, true} {
		withProjects(t, "a", func(w *world) {
			if naively {
				n := newNaive(w)
				w.mustHandle(n, scene{name: "size", like: &Project{}, call: func(ctx context.Context, _ string, obj client.Object) error {
					p := obj.DeepCopyObject().(*Project)
					if apierrors.IsConflict(conflict) { // it will be tried again
						apimeta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: "Sized", Status: "True", Reason: "Observed"})
					}
					_ = w.user.Status().Update(ctx, p)
					return nil
				}})
				n.start()
			} else {
				w.register(handlers.Status("size", "Sized", func(context.Context, *Project) error { return conflict }))
				w.start()
			}
			time.Sleep(time.Hour)
			if got := contains(w.conditions("a"), "Sized=True"); got != naively {
				t.Errorf("naively %t: conditions %q", naively, w.conditions("a"))
			}
		})
	}
}

// A handler with OnRemove put its finalizer on every object of the kind.
func TestFieldFinalizerOnEveryObject(t *testing.T) {
	for _, naively := range []bool{false, true} {
		withProjects(t, "a", func(w *world) {
			if naively {
				n := newNaive(w)
				w.mustHandle(n, scene{name: "one", like: &Project{}, call: func(ctx context.Context, _ string, obj client.Object) error {
					p := obj.DeepCopyObject().(*Project)
					if len(p.Finalizers) == 0 {
						p.Finalizers = []string{"example.com/one"}
						return w.user.Update(ctx, p)
					}
					return nil
				}})
				n.start()
			} else {
				one := w.removingProjects("one")
				one.Selects = big
				w.register(one)
				w.start()
			}
			w.settle()
			if got := w.finalizers("a") != ""; got != naively {
				t.Errorf("naively %t: finalizers %q", naively, w.finalizers("a"))
			}
		})
	}
}

// generating returns a handler that wants ConfigMaps named after it.
func generating(name string, count func(p *Project) int64) handlers.Entry {
	return handlers.Generate(name, func(_ context.Context, req *step.Request[*Project], want *apply.Set) error {
		for i := range count(req.Object) {
			want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", req.Object.Name, name, i)}, Data: map[string]string{"of": name}})
		}
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
}

// children returns the names of the ConfigMaps of Projects.
func (w *world) children() string {
	w.t.Helper()
	list := &corev1.ConfigMapList{}
	w.must(w.user.List(w.ctx, list, client.InNamespace("default")))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return strings.Join(names, " ")
}

// Two generating handlers of one kind keep their children, and leave those of the other alone.
func TestGenerate(t *testing.T) {
	withProjects(t, "p", func(w *world) {
		w.register(generating("fixed", func(*Project) int64 { return 1 }), generating("sized", func(p *Project) int64 { return p.Spec.Size }))
		w.start()
		p := w.project("p")
		p.Spec.Size = 2
		w.must(w.user.Update(w.ctx, p))
		time.Sleep(time.Minute)
		if got := w.children(); got != "p-fixed-0 p-sized-0 p-sized-1" {
			t.Errorf("after they are wanted: %q", got)
		}
		if got := w.conditions("p"); !contains(got, "=True") {
			t.Errorf("conditions %q, want one of the set", got)
		}
		w.must(w.user.Delete(w.ctx, newConfigMap("p-fixed-0", nil)))
		cm := newConfigMap("p-sized-0", nil)
		w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(cm), cm))
		cm.Data["of"] = "others"
		w.must(w.user.Update(w.ctx, cm))
		time.Sleep(time.Minute)
		w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(cm), cm))
		if got := w.children(); got != "p-fixed-0 p-sized-0 p-sized-1" || cm.Data["of"] != "sized" {
			t.Errorf("after a deletion and a change: %q, %v", got, cm.Data)
		}
		p = w.project("p")
		p.Spec.Size = 0
		w.must(w.user.Update(w.ctx, p))
		time.Sleep(time.Minute)
		if got := w.children(); got != "p-fixed-0" {
			t.Errorf("after they are not wanted any more: %q", got)
		}
		w.takeRequests()
		time.Sleep(24 * time.Hour)
		if got := w.takeRequests(); len(got) > 0 {
			t.Errorf("writes of idle objects: %v", got)
		}
	})
}

// A generating handler leaves what others have made under a name: a stranger, and one of a second
// registry. It does so without a write, also when its owner is deleted.
func TestGenerateLeavesOthers(t *testing.T) {
	withProjects(t, "p q", func(w *world) {
		strange := newConfigMap("p-parts-0", nil)
		w.create(strange)
		other, err := handlers.New(w.mgr, handlers.Options{Name: "other"})
		w.must(err)
		of := func(name string) handlers.Entry {
			return handlers.Generate(name, func(_ context.Context, req *step.Request[*Project], want *apply.Set) error {
				want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: req.Object.Name + "-parts-0"}, Data: map[string]string{"of": name}}, apply.Unowned)
				return nil
			}, apply.Tracks(&corev1.ConfigMap{}))
		}
		w.register(of("parts"))
		_, err = other.Register(of("others")) // of another name, because each writes its condition
		w.must(err)
		w.start()
		time.Sleep(time.Minute)
		w.takeRequests()
		taken := newConfigMap("q-parts-0", nil)
		w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(taken), taken))
		time.Sleep(24 * time.Hour)
		if got := w.takeRequests(); len(got) > 0 {
			t.Errorf("the two registries write: %v", got)
		}
		for _, before := range []*corev1.ConfigMap{strange, taken} {
			now := newConfigMap(before.Name, nil)
			w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(now), now))
			if now.ResourceVersion != before.ResourceVersion {
				t.Errorf("%s was changed: %v", now.Name, now)
			}
		}
		w.must(w.user.Delete(w.ctx, w.project("p")))
		w.must(w.user.Delete(w.ctx, w.project("q")))
		time.Sleep(time.Hour)
		if got := w.children(); got != "p-parts-0" {
			t.Errorf("after the owners are deleted: %q", got)
		}
	})
}

// A kind without a definition stops its objects of a set, and no others.
func TestGenerateOfAMissingKind(t *testing.T) {
	withProjects(t, "p", func(w *world) {
		widget := newUnstructured(projectKind.GroupVersion().WithKind("Widget"), "p")
		w.register(handlers.Generate("parts", func(_ context.Context, _ *step.Request[*Project], want *apply.Set) error {
			want.Add(newConfigMap("p-part", nil), widget.DeepCopy())
			return nil
		}, apply.Owns(&corev1.ConfigMap{}, widget)))
		w.start()
		time.Sleep(time.Minute)
		if got := w.conditions("p"); w.children() != "p-part" || !strings.Contains(got, "PartsReady=False") {
			t.Errorf("without the definition: %q, conditions %q", w.children(), got)
		}
		w.must(w.server.Install(definitionOf("Widget")))
		time.Sleep(2 * time.Minute)
		if got := w.conditions("p"); !strings.Contains(got, "PartsReady=True") {
			t.Errorf("with the definition: conditions %q", got)
		}
		w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(widget), widget))
	})
}

// The kinds of Kubernetes have no group that a finalizer could be named by.
func TestGenerateForACoreKind(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		w.register(handlers.Generate("parts", func(_ context.Context, req *step.Request[*corev1.ConfigMap], want *apply.Set) error {
			want.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: req.Object.Name + "-part"}}, apply.Unowned)
			return nil
		}, apply.Tracks(&corev1.Secret{})))
		w.register(handlers.Generate("nothing to clean up", func(context.Context, *step.Request[*corev1.ConfigMap], *apply.Set) error {
			return nil
		}, apply.Owns(&corev1.Secret{})))
		w.start()
		time.Sleep(time.Minute)
		cm, part := newConfigMap("a", nil), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-part"}}
		w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(cm), cm))
		w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(part), part))
		if got := cm.Finalizers; len(got) != 1 || got[0] != "handlers.ctrlkit.dev/test-configmap-parts" {
			t.Errorf("finalizers %q", got)
		}
		w.must(w.user.Delete(w.ctx, cm))
		time.Sleep(time.Minute)
		if err := w.user.Get(w.ctx, client.ObjectKeyFromObject(part), part); err == nil {
			t.Error("what was generated stays")
		}
	})
}

// A deleted child was not made again, because its owner had not changed.
func TestFieldDeletedChildStaysAway(t *testing.T) {
	for _, naively := range []bool{false, true} {
		withProjects(t, "p", func(w *world) {
			if naively {
				n, applied := newNaive(w), ""
				w.mustHandle(n, scene{name: "one", like: &Project{}, owned: &corev1.ConfigMap{}, call: func(ctx context.Context, _ string, obj client.Object) error {
					if applied == obj.GetResourceVersion() {
						return nil // nothing has changed
					}
					applied = obj.GetResourceVersion()
					return w.user.Create(ctx, ownedBy(newConfigMap("p-fixed-0", nil), obj.(*Project), "example.com/v1"))
				}})
				n.start()
			} else {
				w.register(generating("fixed", func(*Project) int64 { return 1 }))
				w.start()
			}
			time.Sleep(time.Minute)
			w.must(w.user.Delete(w.ctx, newConfigMap("p-fixed-0", nil)))
			time.Sleep(time.Hour)
			if got := w.children() == ""; got != naively {
				t.Errorf("naively %t: children %q", naively, w.children())
			}
		})
	}
}

// What steps declare to watch is watched.
func TestStepsThatDeclareWatches(t *testing.T) {
	for _, test := range []struct {
		name  string
		watch step.Watch
		own   func(s *corev1.Secret, a *Project) // makes the Secret matter for Project a
	}{
		{"owned", step.Watch{Object: &corev1.Secret{}, Owned: true}, func(s *corev1.Secret, a *Project) { ownedBy(s, a, "example.com/v1") }},
		{"named", step.Watch{Object: &corev1.Secret{}, Mapped: func(obj client.Object, _ schema.GroupKind) []client.ObjectKey {
			return []client.ObjectKey{key(obj.GetLabels()["for"])}
		}}, func(s *corev1.Secret, _ *Project) { s.Labels = map[string]string{"for": "a"} }},
		{"named by", step.Watch{Object: &corev1.Secret{}, NamedBy: func(obj client.Object) []client.ObjectKey {
			return []client.ObjectKey{{Name: obj.(*Project).Spec.Secret}}
		}}, func(*corev1.Secret, *Project) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			withProjects(t, "a b", func(w *world) {
				a := w.project("a")
				a.Spec.Secret = "s"
				w.must(w.user.Update(w.ctx, a))
				r := w.register(handlers.Steps("one", handlers.StepsOptions[*Project]{}, watching(w, test.watch)))
				w.start()
				w.expect("at the start", "one:a, one:b")
				s := newSecret("s")
				test.own(s, a)
				w.create(s, newSecret("unrelated"))
				w.settle()
				w.expect("after a creation", "one:a")
				w.must(w.user.Delete(w.ctx, s))
				w.settle()
				w.expect("after a deletion", "one:a")
				w.must(r.Stop(w.ctx))
				w.create(newSecret("s"))
				w.settle()
				w.expect("after it is stopped", "")
			})
		})
	}
}

// The conditions of the whole object are computed only where that is wanted.
func TestStepsThatAreComplete(t *testing.T) {
	for _, complete := range []bool{true, false} {
		withProjects(t, "a", func(w *world) {
			w.register(handlers.Steps("one", handlers.StepsOptions[*Project]{Complete: complete},
				step.Step[*Project]{Name: "nothing", Do: func(context.Context, *step.Request[*Project]) error { return nil }}))
			w.start()
			if got := contains(w.conditions("a"), "Ready=True"); got != complete {
				t.Errorf("complete %t: conditions %q", complete, w.conditions("a"))
			}
		})
	}
}
