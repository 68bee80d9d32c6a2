// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

type untyped = unstructured.Unstructured

var looseKind = testkind.Version.WithKind("Loose")

// loose is an object whose kind has no Go type.
func loose() *untyped {
	u := &untyped{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	u.SetGroupVersionKind(looseKind)
	u.SetNamespace("default")
	u.SetName("a")
	return u
}

// An engine for a kind without a Go type does what it does for others: the finalizer, the conditions,
// the status of the steps beside that of others, and the cleanup.
func TestObjectsWithoutAType(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	must(t, server.Install(testkind.Of[ThingSpec, ThingStatus]("Loose").Definition()))
	c, err := client.New(server.Config(), client.Options{Scheme: testkind.Scheme()})
	must(t, err)
	must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})))
	cleaned := false
	e, err := step.New(step.Options[*untyped]{Name: "looses", Kind: looseKind, Client: c, APIReader: c}, step.Step[*untyped]{Name: "Work", Do: func(ctx context.Context, req *step.Request[*untyped]) error {
		must(t, req.EnsureFresh(ctx))
		must(t, unstructured.SetNestedField(req.Object.Object, "Done", "status", "phase"))
		return unstructured.SetNestedField(req.Object.Object, req.Object.GetGeneration(), "status", "observedGeneration")
	}, Cleanup: func(context.Context, *step.Request[*untyped]) error {
		cleaned = true
		return nil
	}})
	must(t, err)
	obj := loose()
	must(t, c.Create(t.Context(), obj))
	theirs := obj.DeepCopy()
	must(t, unstructured.SetNestedField(theirs.Object, "x", "status", "theirs"))
	must(t, c.Status().Update(t.Context(), theirs))
	reconcile := func() {
		t.Helper()
		_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		must(t, err)
		must(t, client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)))
	}
	reconcile()
	first := obj.DeepCopy()
	reconcile()
	if obj.GetResourceVersion() != first.GetResourceVersion() {
		t.Error("the second reconcile has written")
	}
	all, err := condition.Of(obj)
	must(t, err)
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	if !meta.IsStatusConditionTrue(all, condition.Ready) || status["phase"] != "Done" || status["theirs"] != "x" || len(obj.GetFinalizers()) != 1 {
		t.Errorf("the object is %v", obj.Object)
	}
	must(t, unstructured.SetNestedField(obj.Object, int64(4), "spec", "size"))
	must(t, c.Update(t.Context(), obj))
	reconcile()
	if of, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); of != 2 {
		t.Errorf("the status is about generation %d", of)
	}
	must(t, c.Delete(t.Context(), obj))
	reconcile()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil || err == nil || !cleaned {
		t.Errorf("it is there: %v, and was cleaned up: %v", err, cleaned)
	}
}

// Controllers of two kinds without a type are two, and of one kind one.
func TestControllersWithoutAType(t *testing.T) {
	mgr := newIdleManager(t)
	for _, test := range []struct {
		name, kind string
		refused    bool
	}{{"first", "Loose", false}, {"second", "Looser", false}, {"third", "Loose", true}} {
		obj := &untyped{}
		obj.SetGroupVersionKind(testkind.Version.WithKind(test.kind))
		e, err := step.New(step.Options[*untyped]{
			Name: test.name, Kind: obj.GroupVersionKind(), Client: mgr.GetClient(), Controller: controller.Options{SkipNameValidation: new(true)},
		})
		must(t, err)
		if err := e.Complete(ctrl.NewControllerManagedBy(mgr).For(obj)); (err != nil) != test.refused {
			t.Errorf("%s of %s: %v", test.name, test.kind, err)
		}
		defer runtime.KeepAlive(e)
	}
}

// An object of another kind is not taken for one of the engine's although it has the same Go type: its
// end is not that of an object with a pending cleanup.
func TestAnotherKindWithoutAType(t *testing.T) {
	w := newWorld(t)
	e, err := step.New(step.Options[*untyped]{Name: "looses", Kind: looseKind, Client: w.client}, step.Step[*untyped]{Name: "Work", Do: func(context.Context, *step.Request[*untyped]) error { return nil }, Cleanup: func(context.Context, *step.Request[*untyped]) error {
		t.Error("it was cleaned up")
		return nil
	}})
	must(t, err)
	other := loose()
	other.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	other.SetFinalizers([]string{e.Finalizer()})
	e.EventFilter().Delete(event.DeleteEvent{Object: other})
	_, _ = e.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(other)})
}
