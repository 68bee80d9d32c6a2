// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
)

func TestReadingAKind(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.create(newConfigMap("a", map[string]string{"app": "x"}), newConfigMap("b", map[string]string{"app": "y"}))
		maps := handlers.KindOf[*corev1.ConfigMap](w.registry)
		byApp := func(m *corev1.ConfigMap) []string { return []string{m.Labels["app"]} }
		w.must(maps.AddIndex(w.ctx, "app", byApp))
		w.start()
		w.must(maps.AddIndex(w.ctx, "later", byApp)) // also when the cache has objects
		if err := maps.AddIndex(w.ctx, "app", byApp); err == nil || !contains(err.Error(), `index "app" of ConfigMap`) {
			t.Errorf("a second index of the same name: %v", err)
		}
		a, err := maps.Get(w.ctx, key("a"))
		w.must(err)
		a.Labels["app"] = "changed"
		for _, index := range []string{"app", "later"} {
			found, err := maps.ListIndexed(w.ctx, index, "x", client.InNamespace("default"))
			w.must(err)
			if len(found) != 1 || found[0].Name != "a" || found[0].Labels["app"] != "x" {
				t.Errorf("index %s: %v, want a as it was", index, found)
			}
		}
		if _, err := maps.Get(w.ctx, key("c")); !apierrors.IsNotFound(err) {
			t.Errorf("Get of an object that does not exist: %v", err)
		}
	})
}

// What a kind is limited to holds for all readers of the cache, as long as it has handlers.
func TestLimitsOfAKind(t *testing.T) {
	limited := func(o *handlers.Options) {
		o.Kinds = map[schema.GroupKind]handlers.KindOptions{
			{Kind: "ConfigMap"}: {Namespaces: []string{"default"}, Labels: k8slabels.SelectorFromSet(k8slabels.Set{"app": "x"})},
		}
	}
	inWorld(t, limited, func(w *world) {
		other := newConfigMap("other", map[string]string{"app": "x"})
		other.Namespace = "kube-system"
		w.create(newConfigMap("a", map[string]string{"app": "x"}), newConfigMap("b", nil), other)
		r := w.register(w.noting("one"))
		w.start()
		w.expect("at the start", "one:a")
		found, err := handlers.KindOf[*corev1.ConfigMap](w.registry).List(w.ctx)
		w.must(err)
		if len(found) != 1 {
			t.Errorf("%d objects in the cache, want 1", len(found))
		}
		w.must(r.Stop(w.ctx))
		found, err = handlers.KindOf[*corev1.ConfigMap](w.registry).List(w.ctx)
		w.must(err)
		if len(found) < 3 {
			t.Errorf("%d objects when there are no handlers, want all", len(found))
		}
	})
}

func TestOptionsOfKinds(t *testing.T) {
	workers := func(o *handlers.Options) {
		o.Default.Workers = 3
		o.Kinds = map[schema.GroupKind]handlers.KindOptions{{Kind: "Secret"}: {Workers: 2}}
	}
	inWorld(t, workers, func(w *world) {
		for _, name := range []string{"a", "b", "c", "d"} {
			w.create(newConfigMap(name, nil), newSecret(name))
		}
		var maps, secrets atomic.Int32
		most := func(running *atomic.Int32) func() {
			if running.Add(1) > 3 {
				t.Error("more calls at the same time than workers")
			}
			time.Sleep(time.Second)
			return func() { running.Add(-1) }
		}
		w.register(handlers.Handler[*corev1.ConfigMap]{Name: "maps", OnChange: func(context.Context, *corev1.ConfigMap) error {
			defer most(&maps)()
			w.call("map")
			return nil
		}}, handlers.Handler[*corev1.Secret]{Name: "secrets", OnChange: func(context.Context, *corev1.Secret) error {
			defer most(&secrets)()
			w.call("secret")
			return nil
		}})
		w.start()
		time.Sleep(time.Second)
		w.expect("after a second and a half", "map, map, map, secret, secret")
	})
}
