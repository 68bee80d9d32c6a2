// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
)

func newSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func ownedBy(obj client.Object, owner *Project, apiVersion string) client.Object {
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: "Project", Name: owner.Name, UID: owner.UID, Controller: new(true)}})
	return obj
}

// related registers a handler of Projects with relations, beside one without, and starts.
func (w *world) related(relations ...handlers.Relation) {
	w.t.Helper()
	w.must(w.server.Install(definitionOf("Project")))
	w.create(newProject("a"), newProject("b"))
	handler := func(name string, all ...handlers.Relation) handlers.Entry {
		return handlers.Handler[*Project]{Name: name, Related: all, OnChange: func(_ context.Context, obj *Project) (ctrl.Result, error) {
			w.call(name + ":" + obj.Name)
			return ctrl.Result{}, nil
		}}
	}
	w.register(handler("one", relations...), handler("other"))
	w.start()
	w.takeCalls()
}

func TestOwned(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.related(handlers.Owned(&corev1.Secret{}))
		a, b := newProject("a"), newProject("b")
		w.must(w.user.Get(w.ctx, key("a"), a))
		w.must(w.user.Get(w.ctx, key("b"), b))
		secret := newSecret("s")
		w.create(ownedBy(secret, a, "example.com/v1beta1"), newSecret("unrelated")) // of another version
		w.settle()
		w.expect("after a creation", "one:a")
		w.must(w.user.Update(w.ctx, ownedBy(secret, b, "example.com/v1")))
		w.settle()
		w.expect("after it has changed hands", "one:a, one:b")
		w.must(w.user.Delete(w.ctx, secret))
		w.settle()
		w.expect("after a deletion", "one:b")
	})
}

func TestLabeled(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.related(handlers.Labeled(&corev1.Secret{}, "project"))
		secret := newSecret("s")
		secret.Labels = map[string]string{"project": "a"}
		w.create(secret)
		w.settle()
		w.expect("after a creation", "one:a")
		secret.Labels = nil
		w.must(w.user.Update(w.ctx, secret))
		w.settle()
		w.expect("after the label is gone", "one:a")
	})
}

func TestRelated(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.related(handlers.Related(&corev1.Secret{}, func(s *corev1.Secret) []client.ObjectKey {
			return []client.ObjectKey{key("a"), key("b"), key("a"), {}}
		}))
		w.create(newSecret("s"))
		w.settle()
		w.expect("after a creation", "one:a, one:b")
	})
}

func TestNamedBy(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.related(handlers.NamedBy(&corev1.Secret{}, func(p *Project) []client.ObjectKey {
			return []client.ObjectKey{{Name: p.Spec.Secret}}
		}))
		w.create(newSecret("s"))
		w.settle()
		w.expect("while nothing names it", "")
		a := newProject("a")
		w.must(w.user.Get(w.ctx, key("a"), a))
		a.Spec.Secret = "s"
		w.must(w.user.Update(w.ctx, a))
		w.settle()
		w.takeCalls()
		w.touch(newSecret("s"))
		w.settle()
		w.expect("after a change of what is named", "one:a")
	})
}

// A relation does not wait for the backoff of a failure, which it may have healed.
func TestRelatedChangesCutTheBackoff(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.must(w.server.Install(definitionOf("Project")))
		w.create(newProject("a"))
		w.register(handlers.Handler[*Project]{
			Name: "one", Related: []handlers.Relation{handlers.Labeled(&corev1.Secret{}, "project")},
			OnChange: func(ctx context.Context, obj *Project) (ctrl.Result, error) {
				if err := w.registry.Client().Get(ctx, key("s"), newSecret("s")); err != nil {
					return ctrl.Result{}, errors.New("no secret")
				}
				w.call("done")
				return ctrl.Result{}, nil
			},
		})
		w.start()
		time.Sleep(time.Hour)
		secret := newSecret("s")
		secret.Labels = map[string]string{"project": "a"}
		w.create(secret)
		w.settle()
		w.expect("half a second after the secret is there", "done")
	})
}

// The kind of a relation may come later than the handler: then what exists is news.
func TestRelatedKindComesLater(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", nil))
		one := w.noting("one")
		one.Related = []handlers.Relation{handlers.Labeled(&Project{}, "map")}
		w.register(one)
		w.start()
		w.expect("at the start", "one:a")
		w.must(w.server.Install(definitionOf("Project")))
		p := newProject("p")
		p.Labels = map[string]string{"map": "a"}
		w.create(p)
		time.Sleep(10 * time.Second)
		w.expect("after the kind has come", "one:a")
	})
}

func TestRelationsAreChecked(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		one := w.noting("one")
		one.Related = []handlers.Relation{
			{}, handlers.Labeled(&corev1.Secret{}, ""), handlers.NamedBy(&corev1.Secret{}, func(*Project) []client.ObjectKey { return nil }),
		}
		_, err := w.registry.Register(one)
		for _, want := range []string{"relation 1: no watched object", "relation 2: it relates nothing", "relation 3: the function of NamedBy is for *handlers_test.Project"} {
			if err == nil || !contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	})
}
