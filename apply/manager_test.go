// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A kind without a definition stops the objects of it, what comes in later waves, and nothing else.
// When the definition comes, the rest is made.
func TestMissingDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
		must(t, server.Install(shopDefinition()))
		c := connect(t, server.Config(), metav1.NamespaceDefault)
		gadget := &unstructured.Unstructured{}
		gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
		with, without := c.shop("with"), c.shop("without")

		mgr := newManager(t, server)
		parts := apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], want *apply.Set) error {
			name := req.Object.Name
			want.Add(newConfigMap(name))
			want.Add(newConfigMap(name+"-later"), apply.Wave(1))
			if name == "with" {
				g := gadget.DeepCopy()
				g.SetName(name)
				want.Add(g)
			}
			return nil
		}, apply.Owns(&corev1.ConfigMap{}, gadget))
		engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Cache: mgr.GetCache()}, parts)
		if err == nil {
			err = engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Shop{}))
		}
		must(t, err)
		stop := startManager(t, mgr)
		check := func(when, exist, condition string) {
			t.Helper()
			if got := strings.Join(slices.Sorted(maps.Keys(c.versions())), " "); got != exist {
				t.Errorf("%s there is %s, want %s", when, got, exist)
			}
			if got := c.condition(with); got != condition {
				t.Errorf("%s the condition is %s", when, got)
			}
			if got := c.condition(without); got != "True AllReady" {
				t.Errorf("%s the condition of the other is %s", when, got)
			}
		}
		time.Sleep(10 * time.Minute)
		check("without the definition", "with without without-later",
			"False NotAllReady: 1 of 3 ready: Gadget with: waits for the definition of Gadget in example.com/v1")
		definition := shopDefinition()
		definition.Name, definition.Spec.Group = "gadgets.example.com", "example.com"
		definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gadget", ListKind: "GadgetList", Plural: "gadgets", Singular: "gadget"}
		must(t, server.Install(definition))
		time.Sleep(20 * time.Second)
		check("with the definition", "with with-later without without-later", "True AllReady")
		stop()
	})
}

// Who fights over a field is named, also where the cache has only our managed fields.
func TestFightWithAnAutoscaler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
		must(t, server.Install(shopDefinition()))
		c := connect(t, server.Config(), metav1.NamespaceDefault)
		shop := c.shop("shop")
		mgr := newManager(t, server)
		engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader()},
			apply.Children("Parts", func(_ context.Context, _ *step.Request[*Shop], want *apply.Set) error {
				want.Add(newDeployment("web", 3), apply.NoWait)
				return nil
			}, apply.Owns(&appsv1.Deployment{})))
		if err == nil {
			err = engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Shop{}))
		}
		must(t, err)
		stop := startManager(t, mgr)
		for range 120 {
			time.Sleep(time.Second)
			c.patch(newDeployment("web", 3), `{"spec":{"replicas":5}}`)
		}
		c.get(shop, "shop")
		ready := meta.FindStatusCondition(shop.Status.Conditions, condition.Ready)
		want := `.spec.replicas of Deployment default/web is written again and again: field manager "third-party" writes it too, stop one of the two, or leave the field to it (a child: apply.Theirs)`
		if ready == nil || !strings.Contains(ready.Message, want) {
			t.Errorf("Ready is %v", ready)
		}
		stop()
	})
}

// Those who can't have an object name the owner that it has now.
func TestLosersNameTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
		must(t, server.Install(shopDefinition()))
		c := connect(t, server.Config(), metav1.NamespaceDefault)
		mgr := newManager(t, server)
		engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Controller: controller.Options{MaxConcurrentReconciles: 4}},
			apply.Children("Parts", func(_ context.Context, _ *step.Request[*Shop], want *apply.Set) error {
				want.Add(newConfigMap("x"))
				return nil
			}, apply.Owns(&corev1.ConfigMap{})))
		if err == nil {
			err = engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Shop{}))
		}
		must(t, err)
		shops := map[string]*Shop{}
		for i := range 12 {
			name := fmt.Sprintf("s%d", i)
			shops[name] = c.shop(name)
		}
		stop := startManager(t, mgr)
		for len(shops) > 1 {
			time.Sleep(15 * time.Minute)
			x := newConfigMap("x")
			c.get(x, "x")
			owner := metav1.GetControllerOf(x).Name
			for name, shop := range shops {
				want := "False OwnedByAnother: ConfigMap default/x exists, is controlled by Shop " + owner + " and is not ours: "
				if name == owner {
					want = "True AllReady"
				}
				if got := c.condition(shop); !strings.HasPrefix(got, want) {
					t.Errorf("%s has %s, and the owner is %s", name, got, owner)
				}
			}
			c.delete(shops[owner])
			time.Sleep(time.Second)
			c.delete(x) // as the garbage collector does
			delete(shops, owner)
		}
		stop()
	})
}

// A controller starts when the definition of its own kind is there.
func TestWhenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
		c := connect(t, server.Config(), metav1.NamespaceDefault)
		mgr := newManager(t, server)
		engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader()},
			apply.Children("Parts", func(_ context.Context, _ *step.Request[*Shop], want *apply.Set) error {
				want.Add(newConfigMap("x"))
				return nil
			}, apply.Owns(&corev1.ConfigMap{})))
		if err == nil {
			err = step.WhenServed(mgr, func() error { return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Shop{})) }, &Shop{})
		}
		must(t, err)
		stop := startManager(t, mgr)
		time.Sleep(10 * time.Minute)
		must(t, server.Install(shopDefinition()))
		shop := c.shop("shop")
		time.Sleep(20 * time.Second)
		if got := c.condition(shop); got != "True AllReady" {
			t.Errorf("with its definition: %s", got)
		}
		stop()
	})
}

// newManager returns a manager that nothing listens to. Its cache keeps the managed fields of the engine.
func newManager(t *testing.T, server *apiserver.Server) ctrl.Manager {
	t.Helper()
	return newManagerOf(t, server.Config(), cache.Options{DefaultTransform: apply.CacheTransform()})
}

func newManagerOf(t *testing.T, config *rest.Config, options cache.Options) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(), Cache: options,
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	must(t, err)
	return mgr
}

// startManager starts a manager, and returns a function that stops it.
func startManager(t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
