// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// Whatever the watches of a controller report of an idle object runs its steps, also with a cache
// that is restricted to namespaces. What they do not report does not.
func TestIdleObjectsAndTheirWatches(t *testing.T) {
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	secret := func(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: object(name)} }
	touch := func(c *cluster, obj client.Object) {
		c.must(c.user.Patch(c.t.Context(), obj, mergePatch(`{"metadata":{"labels":{"changed":"yes"}}}`)))
	}
	tests := []struct {
		name   string
		happen func(c *cluster)
		runs   bool
	}{
		{"nothing", func(*cluster) {}, false},
		{"its child changes", func(c *cluster) { touch(c, &corev1.ConfigMap{ObjectMeta: object("child")}) }, true},
		{"its child is deleted", func(c *cluster) {
			c.must(c.user.Delete(c.t.Context(), &corev1.ConfigMap{ObjectMeta: object("child")}))
		}, true},
		{"a Secret that it names changes", func(c *cluster) { touch(c, secret("named")) }, true},
		{"a Service that a wrapped handler maps to it changes", func(c *cluster) { touch(c, &corev1.Service{ObjectMeta: object("mapped")}) }, true},
		{"it changes", func(c *cluster) { touch(c, c.thing()) }, true},
		{"a Secret that it does not read changes", func(c *cluster) { touch(c, secret("other")) }, false},
	}
	for _, namespaces := range []map[string]cache.Config{nil, {"default": {}}} {
		for _, test := range tests {
			runInCluster(t, test.name, func(t *testing.T, c *cluster) {
				for _, obj := range []client.Object{
					secret("named"), secret("other"),
					&corev1.Service{ObjectMeta: object("mapped"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
				} {
					c.create(obj)
				}
				engine := c.start(operator{name: "things", skipUnchanged: true, namespaces: namespaces, steps: []step.Step[*Thing]{watching(doing("A", readingAll), step.WatchNamed(&corev1.Secret{}, func(*Thing) []client.ObjectKey { return []client.ObjectKey{{Name: "named"}} }))}, watchWith: watchingAll})
				pass(5 * time.Second)
				reconcileOnce := func() {
					synctest.Wait() // the worker of the controller is idle
					_, err := engine.Reconcile(t.Context(), thingRequest)
					c.must(err)
				}
				reconcileOnce() // it compares
				before := c.ran("things")
				test.happen(c)
				pass(time.Second)
				same(t, "the steps ran", test.runs, c.ran("things") > before)
				reconcileOnce()
				before = c.ran("things")
				if reconcileOnce(); c.ran("things") != before || c.ended["things"] != journal.ResultConverged {
					t.Errorf("it is not idle again: %s", c.ended["things"])
				}
			})
		}
	}
}

// readingAll is a Do that keeps a ConfigMap, and reads a Secret and a Service.
func readingAll(ctx context.Context, req *request) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Data: map[string]string{"a": "b"}}
	if err := apply.Ensure(ctx, req, child); err != nil {
		return err
	}
	if _, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: "named"}); err != nil {
		return err
	}
	_, err := step.GetOrWait[*corev1.Service](ctx, req, client.ObjectKey{Name: "mapped"})
	return err
}

// watchingAll adds a watch of each way for what readingAll reads.
func watchingAll(e *step.Engine[*Thing], b *builder.Builder) *builder.Builder {
	mapped := func(_ context.Context, obj client.Object) []reconcile.Request {
		if obj.GetName() != "mapped" {
			return nil
		}
		return []reconcile.Request{thingRequest}
	}
	return b.Owns(&corev1.ConfigMap{}).Watches(&corev1.Service{}, e.WrapHandler(handler.EnqueueRequestsFromMapFunc(mapped)))
}
