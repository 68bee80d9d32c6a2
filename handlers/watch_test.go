// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func ownedBy(obj client.Object, owner *Project, apiVersion string) client.Object {
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: "Project", Name: owner.Name, UID: owner.UID, Controller: new(true)}})
	return obj
}

// The mistakes in watches are found when the handler is registered, in both kinds of handlers.
func TestRelatedIsChecked(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		one := w.noting("one")
		one.Related = []step.Watch{
			{}, step.WatchLabeled(&corev1.Secret{}, ""), step.WatchNamed(&corev1.Secret{}, func(*Project) []client.ObjectKey { return nil }),
		}
		reading := w.noting("reading")
		reading.Related = []step.Watch{{Object: &corev1.Secret{}, Read: true}}
		_, err := w.registry.Register(one, reading)
		for _, want := range []string{
			"related 1: no watched object", "related 2: watch of *v1.Secret: it requests nothing",
			"related 3: watch of *v1.Secret: the function of WatchNamed is for *testkind.Object[", "related 1: what a handler without steps reads is not recorded",
		} {
			if err == nil || !contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		_, err = w.registry.Register(handlers.Steps("two", handlers.StepsOptions[*corev1.ConfigMap]{Related: one.Related[2:]}, nothing))
		if want := "Options.Watches: watch 1: watch of *v1.Secret: the function of WatchNamed is for *testkind.Object["; err == nil || !contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	})
}

// nothing is a step that does nothing.
var nothing = step.Step[*corev1.ConfigMap]{Name: "nothing", Do: func(context.Context, *step.Request[*corev1.ConfigMap]) error { return nil }}

// The finalizer of a kind without a group has a default, wherever among the steps a Cleanup is.
func TestFinalizerOfAKindWithoutAGroup(t *testing.T) {
	cleaning := nothing
	cleaning.Name, cleaning.Cleanup = "cleaning", nothing.Do
	for name, s := range map[string]step.Step[*corev1.ConfigMap]{
		"a step": cleaning, "in a group": step.Group("all", nothing, cleaning), "in groups": step.Group("most", step.GroupOrdered("all", nothing, cleaning)),
		"under a condition": step.When("always", func(*step.Request[*corev1.ConfigMap]) bool { return true }, cleaning), "nothing": step.Group("all", nothing),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.create(newConfigMap("a", nil))
				w.register(handlers.Steps("one", handlers.StepsOptions[*corev1.ConfigMap]{}, s))
				w.start()
				a := newConfigMap("a", nil)
				w.must(w.user.Get(w.ctx, key("a"), a))
				if got := strings.Join(a.Finalizers, ", "); got != "handlers.ctrlkit.dev/test-configmap-one" && name != "nothing" || got != "" && name == "nothing" {
					t.Errorf("finalizers %q", got)
				}
			})
		})
	}
}
