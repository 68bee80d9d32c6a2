// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// The record of a set does not go before the set: not when it is deleted, and not with its namespace,
// which goes all the same.
func TestRecordStaysUntilTheSetIsGone(t *testing.T) {
	for _, tt := range []struct {
		name   string
		record string // its namespace
		do     func(c *cluster, shop *Shop)
	}{
		{"the namespace of all is deleted", "tenant", func(c *cluster, _ *Shop) { c.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}) }},
		{"the record is deleted, then the Shop", "tenant", func(c *cluster, shop *Shop) {
			c.delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "shop-set"}})
			time.Sleep(5 * time.Minute)
			c.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"spec":{"size":2}}`) // it is still kept
			time.Sleep(5 * time.Minute)
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "far"}}
			if !c.get(cm, "web") || cm.Data["size"] != "2" {
				c.t.Errorf("the child has %v", cm.Data)
			}
			c.delete(shop)
		}},
		{"the namespace of the record is deleted, then the Shop", "records", func(c *cluster, shop *Shop) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "records"}}
			c.delete(namespace)
			time.Sleep(5 * time.Minute)
			if c.get(namespace, "records") {
				c.t.Errorf("the namespace is not gone: %v", namespace.Status)
			}
			if !c.get(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "far"}}, "web") {
				c.t.Errorf("the child of a living owner is gone")
			}
			c.delete(shop)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctrl.SetLogger(logr.Discard())
				server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
				must(t, server.Install(shopDefinition()))
				c := connect(t, server.Config(), "tenant")
				c.t = t
				for _, name := range []string{"far", "records", "tenant"} {
					c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
				}
				applier := &apply.Applier{Client: c.client, FieldOwner: "shops"}
				stop := c.run(t, server.Config(), false, cache.Options{}, apply.ChildrenIn("Parts", func(_ context.Context, req *step.Request[*Shop]) (apply.Place, error) {
					return apply.Place{Applier: applier, Name: client.ObjectKey{Namespace: tt.record, Name: "shop-set"}, Every: time.Minute}, nil
				}, func(_ context.Context, req *step.Request[*Shop], want *apply.Set) error {
					cm := newConfigMap("web", "size", strings.Repeat("2", min(1, int(req.Object.Spec.Size))))
					cm.Namespace = "far"
					want.Add(cm)
					return nil
				}))
				shop := c.shop("shop")
				time.Sleep(2 * time.Minute)
				if !c.get(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "far"}}, "web") {
					t.Fatal("no child")
				}
				tt.do(c, shop)
				time.Sleep(20 * time.Minute)
				if c.get(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "far"}}, "web") {
					t.Error("the child is left without a word")
				}
				if c.get(&Shop{}, "shop") || c.get(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tt.record}}, "shop-set") {
					t.Error("the Shop, or the record, stays")
				}
				stop()
			})
		})
	}
}
