// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Every write of a step carries the name of the engine, unless the step names another field owner.
func TestWritesCarryTheFieldOwner(t *testing.T) {
	tests := []struct {
		name  string
		write func(ctx context.Context, c client.Client, obj *Thing) error
		of    client.Object
	}{
		{"create", func(ctx context.Context, c client.Client, _ *Thing) error {
			return c.Create(ctx, configMap("new", map[string]string{"a": "b"}))
		}, configMap("new", nil)},
		{"update", func(ctx context.Context, c client.Client, _ *Thing) error {
			cm := configMap("child", nil)
			if err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}
			cm.Data = map[string]string{"a": "b"}
			return c.Update(ctx, cm)
		}, configMap("child", nil)},
		{"patch", func(ctx context.Context, c client.Client, _ *Thing) error {
			return c.Patch(ctx, configMap("child", nil), mergePatch(`{"data":{"a":"b"}}`))
		}, configMap("child", nil)},
		{"apply", func(ctx context.Context, c client.Client, _ *Thing) error {
			return c.Apply(ctx, corev1ac.ConfigMap("child", "default").WithData(map[string]string{"a": "b"}))
		}, configMap("child", nil)},
		{"update of the status", func(ctx context.Context, c client.Client, obj *Thing) error {
			b := &Thing{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "b"}, b); err != nil {
				return err
			}
			b.Status.Size = 3
			return c.Status().Update(ctx, b)
		}, &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}},
		{"patch of the status", func(ctx context.Context, c client.Client, obj *Thing) error {
			b := &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
			return c.Status().Patch(ctx, b, mergePatch(`{"status":{"size":3}}`))
		}, &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			// Without a field there would be no managed fields, and then the API server tracks
			// none until something is applied.
			c.create(configMap("child", map[string]string{"x": "y"}))
			c.create(&Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})
			c.start(operator{name: "things", of: "a", steps: steps{doing("Write", func(ctx context.Context, req *request) error {
				return client.IgnoreAlreadyExists(test.write(ctx, req.Client, req.Object))
			})}})
			pass(10 * time.Second)
			c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(test.of), test.of))
			var got []string
			for _, e := range test.of.GetManagedFields() {
				if e.Manager != "user" {
					got = append(got, e.Manager)
				}
			}
			same(t, "managers besides the user", []string{"things"}, got)
		})
	}
}

func TestAFieldOwnerOfAStepWins(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start(operator{name: "things", steps: steps{doing("Write", func(ctx context.Context, req *request) error {
			return req.Client.Apply(ctx, corev1ac.ConfigMap("child", "default").WithData(map[string]string{"a": "b"}), client.FieldOwner("special"))
		})}})
		pass(10 * time.Second)
		cm := configMap("child", nil)
		c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
		if got := cm.ManagedFields; len(got) != 1 || got[0].Manager != "special" {
			t.Errorf("managers: %v", got)
		}
	})
}
