// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/outside"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/sim"
)

// All operators do the same, so that their costs can be compared: against the API server in memory
// each converges, and reverts what is done to its children, but for the limit, which keeps nothing.
func TestOperatorsConverge(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	for _, o := range All() {
		t.Run(o.Name, func(t *testing.T) {
			c := start(t, o, "")
			w := &widget.Widget{Spec: widget.Spec{First: "1", Second: "2", Third: "3"}}
			w.Namespace, w.Name = "default", "one"
			if o.Name == "limit" {
				w.Finalizers = []string{widget.Finalizer} // from the policy
			}
			must(t, c.Create(t.Context(), w))
			await(t, c, "the Widget is ready", converged)
			if o.Name == "limit" {
				return
			}
			must(t, c.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"third":"three"}}`))))
			await(t, c, "the Widget has changed", func(ctx context.Context, c client.Client) bool {
				var service corev1.Service
				return c.Get(ctx, key, &service) == nil && service.Spec.Selector["app"] == "three" && converged(ctx, c)
			})
			var before corev1.Secret
			must(t, c.Get(t.Context(), key, &before))
			must(t, c.Delete(t.Context(), &before))
			await(t, c, "the Widget has a Secret again", func(ctx context.Context, c client.Client) bool {
				var secret corev1.Secret
				return c.Get(ctx, key, &secret) == nil && secret.UID != before.UID
			})
			must(t, c.Delete(t.Context(), w))
			await(t, c, "the Widget is gone", func(ctx context.Context, c client.Client) bool {
				return client.IgnoreNotFound(c.Get(ctx, key, &widget.Widget{})) == nil && c.Get(ctx, key, &widget.Widget{}) != nil
			})
		})
	}
}

var key = client.ObjectKey{Namespace: "default", Name: "one"}

// Those of external resources keep one in step with each Widget, and publish its password.
func TestOperatorsConvergeOutside(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	for _, o := range Outside() {
		t.Run(o.Name, func(t *testing.T) {
			system, err := outside.Start(0)
			must(t, err)
			t.Cleanup(func() { must(t, system.Close()) })
			c := start(t, o, system.URL())
			w := &widget.Widget{Spec: widget.Spec{First: "1"}}
			w.Namespace, w.Name = "default", "one"
			must(t, c.Create(t.Context(), w))
			await(t, c, "the Widget is ready", func(ctx context.Context, c client.Client) bool {
				var secret corev1.Secret
				return c.Get(ctx, key, w) == nil && meta.IsStatusConditionTrue(w.Status.Conditions, "Ready") &&
					c.Get(ctx, key, &secret) == nil && string(secret.Data["password"]) == "password-1"
			})
			must(t, c.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"first":"one"}}`))))
			await(t, c, "the resource has changed", func(context.Context, client.Client) bool { return system.Sizes()["one"] == 1 })
			must(t, c.Delete(t.Context(), w))
			await(t, c, "the Widget and its resource are gone", func(ctx context.Context, c client.Client) bool {
				return apierrors.IsNotFound(c.Get(ctx, key, w)) && len(system.Sizes()) == 0
			})
		})
	}
}

// start runs an operator, and returns a client of a user.
func start(t *testing.T, o Operator, system string) client.Client {
	t.Helper()
	server := sim.NewServer(sim.ServerOptions{})
	crd, err := widget.Definition()
	must(t, err)
	must(t, server.Install(crd))
	settings := process.Settings{Namespace: "default", Workers: 1, System: system, Poll: time.Hour}
	options, err := o.Options(settings)
	must(t, err)
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(server.Config(), options)
	must(t, err)
	must(t, o.Add(mgr, settings))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	c, err := client.New(server.Config(), client.Options{Scheme: options.Scheme})
	must(t, err)
	return c
}

// converged reports whether the Widget is ready, with what it should have.
func converged(ctx context.Context, c client.Client) bool {
	var w widget.Widget
	if c.Get(ctx, key, &w) != nil || len(w.Finalizers) != 1 || w.Status.ObservedGeneration != w.Generation || !meta.IsStatusConditionTrue(w.Status.Conditions, "Ready") {
		return false
	}
	for _, child := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}} {
		if c.Get(ctx, key, child) != nil || !metav1.IsControlledBy(child, &w) || child.GetLabels()["widget"] != w.Name {
			return false
		}
	}
	return true
}

// await asks until done returns true.
func await(t *testing.T, c client.Client, what string, done func(context.Context, client.Client) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(2 * time.Millisecond) // the operator runs in real time
	defer ticker.Stop()
	for !done(ctx, c) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
