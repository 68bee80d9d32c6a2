// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit/bench/operators"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/sim"
)

// A population notes when its Widgets are ready, however many are created at once, and when a child
// exists again; and it finds children that are not as they should be.
func TestPopulation(t *testing.T) {
	user := inMemory(t)
	operate(t, user)
	p, err := watchPopulation(t.Context(), user, "default")
	must(t, err)
	defer p.stop()

	name, took, err := p.create(t.Context())
	if err != nil || took <= 0 {
		t.Fatalf("create took %v, error %v", took, err)
	}
	must(t, p.check(t.Context(), name))
	took, err = p.createAtOnce(t.Context(), 30)
	if err != nil || took <= 0 || p.made != 31 {
		t.Fatalf("%d Widgets, the last 30 took %v, error %v", p.made, took, err)
	}
	took, err = p.repair(t.Context(), name)
	if err != nil || took <= 0 {
		t.Errorf("repair took %v, error %v", took, err)
	}

	service := &corev1.Service{}
	must(t, user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, service))
	service.Spec.Selector["app"] = "edited"
	must(t, user.Update(t.Context(), service))
	if err := p.check(t.Context(), name); err == nil || !strings.Contains(err.Error(), "edited") {
		t.Errorf("error %v about an edited Service", err)
	}
	must(t, user.Delete(t.Context(), service))
	if err := p.check(t.Context(), name); err == nil {
		t.Error("no error about a Service that does not exist")
	}
}

func inMemory(t *testing.T) client.WithWatch {
	t.Helper()
	server := sim.NewServer(sim.ServerOptions{})
	crd, err := widget.Definition()
	must(t, err)
	must(t, server.Install(crd))
	scheme, err := widget.NewScheme()
	must(t, err)
	user, err := client.NewWithWatch(server.Config(), client.Options{Scheme: scheme})
	must(t, err)
	return user
}

// operate is an operator that creates the children of new Widgets, and ConfigMaps again.
func operate(t *testing.T, c client.WithWatch) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	widgets, err := c.Watch(ctx, &widget.List{}, client.InNamespace("default"))
	must(t, err)
	configMaps, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
	must(t, err)
	go func() {
		defer close(done)
		for {
			var err error
			select {
			case event := <-widgets.ResultChan():
				if w, ok := event.Object.(*widget.Widget); ok && event.Type == watch.Added {
					err = finish(ctx, c, w)
				}
			case event := <-configMaps.ResultChan():
				if deleted, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Deleted {
					deleted.ResourceVersion, deleted.UID = "", ""
					err = c.Create(ctx, deleted)
				}
			case <-ctx.Done():
				return
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func finish(ctx context.Context, c client.Client, w *widget.Widget) error {
	w.Finalizers = []string{widget.Finalizer}
	if err := c.Update(ctx, w); err != nil {
		return err
	}
	for _, child := range []client.Object{operators.ConfigMap(w), operators.Secret(w), operators.Service(w)} {
		if err := controllerutil.SetControllerReference(w, child, c.Scheme()); err != nil {
			return err
		}
		if err := c.Create(ctx, child); err != nil {
			return err
		}
	}
	operators.SetReady(w)
	return c.Status().Update(ctx, w)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
