// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
)

// checkTaken gives the Website blog its Secret: it continues, and finds that a name is taken, until
// the owner of the object gives it away.
func checkTaken(t *testing.T, c *exampletest.Cluster, theirs *corev1.ConfigMap) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: c.In("blog-credentials")}
	exampletest.Must(t, c.Create(t.Context(), secret))
	blog := exampletest.Await(t, c, "blog", func(site *v1.Website) bool {
		return exampletest.Reason(site, condition.Stalled) == apply.ReasonOwnedByAnother
	})
	ctrlkittest.CheckConditions(t, blog)
	message := "ConfigMap " + c.Namespace + "/blog exists, has no owner and is not ours: delete it, or allow it to be taken over with the annotation apply.ctrlkit.dev/policy: adopt"
	if got := meta.FindStatusCondition(blog.Status.Conditions, "PartsReady"); got == nil || got.Message != message {
		t.Errorf("PartsReady is %+v, want the message %q", got, message)
	}
	var now corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), &now); err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the foreign ConfigMap: version %s and error %v, want that it is untouched", now.ResourceVersion, err)
	}

	c.Patch(t, theirs, `{"metadata":{"annotations":{"apply.ctrlkit.dev/policy":"adopt"}}}`)
	exampletest.Await(t, c, "blog", exampletest.Ready[*v1.Website])
	exampletest.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(theirs), &now))
	if !metav1.IsControlledBy(&now, blog) || now.UID != theirs.UID || now.Data["index.html"] == "" {
		t.Errorf("the adopted ConfigMap: %+v, want the content and the owner reference of the Website", now)
	}
}

// checkRepair deletes a part, and edits another one by hand.
func checkRepair(t *testing.T, c *exampletest.Cluster, shop *v1.Website) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: c.In(shop.Name)}
	exampletest.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(service), service))
	deleted := service.UID
	exampletest.Must(t, c.Delete(t.Context(), service))
	exampletest.Await(t, c, shop.Name, func(s *corev1.Service) bool { return s.UID != deleted })

	content := &corev1.ConfigMap{ObjectMeta: c.In(shop.Name)}
	c.Patch(t, content, `{"data":{"index.html":"edited by hand"}}`)
	exampletest.Await(t, c, shop.Name, func(content *corev1.ConfigMap) bool { return maps.Equal(content.Data, shop.Spec.Content) })
}

// checkSwitches switches parts off, and one of them on again.
func checkSwitches(t *testing.T, c *exampletest.Cluster) {
	t.Helper()
	shop := &v1.Website{ObjectMeta: c.In("shop")}
	c.Patch(t, shop, `{"spec":{"public":false,"priority":null}}`)
	ready := func(site *v1.Website) bool {
		return site.Generation >= shop.Generation && exampletest.Ready(site)
	}
	now := exampletest.Await(t, c, "shop", ready)
	for _, part := range []client.Object{
		&networkingv1.Ingress{ObjectMeta: c.In("shop")},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace + ".shop-100"}},
	} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(part), part); !apierrors.IsNotFound(err) {
			t.Errorf("%T, which the spec does not ask for any more: error %v, want that it is gone", part, err)
		}
	}
	for key := range now.Annotations {
		if strings.HasPrefix(key, "tracked.apply.ctrlkit.dev/") {
			t.Errorf("the annotation %s=%s names a part that is gone", key, now.Annotations[key])
		}
	}
	c.Patch(t, shop, `{"spec":{"public":true}}`)
	exampletest.Await(t, c, "shop", ready)
}

// checkRestart starts the operator anew: it reconciles both Websites, and writes nothing.
func checkRestart(t *testing.T, c *exampletest.Cluster) {
	t.Helper()
	dns := &reportingDNS{DNS: newMemoryDNS(), hosts: make(chan string, 10)}
	writes, stop := start(t, c, dns)
	for seen := map[string]bool{}; len(seen) < 2; {
		seen[<-dns.hosts] = true // it is the last step: the others have passed
	}
	stop() // it waits for the reconciles
	if got := writes.Load(); got != 0 {
		t.Errorf("a restarted operator has made %d writes, want none", got)
	}
}

// reportingDNS reports each record that is ensured.
type reportingDNS struct {
	DNS
	hosts chan string
}

func (d *reportingDNS) Ensure(ctx context.Context, host, target string, owner *v1.Website) error {
	err := d.DNS.Ensure(ctx, host, target, owner)
	d.hosts <- host
	return err
}

// checkDeletion deletes a Website, and checks that its parts go in the reverse order of their waves.
func checkDeletion(t *testing.T, c *exampletest.Cluster, shop *v1.Website) {
	t.Helper()
	var (
		wait     sync.WaitGroup
		versions [4]int64 // in which a part was deleted: versions grow
	)
	in := c.In(shop.Name)
	parts := []client.Object{&networkingv1.Ingress{ObjectMeta: in}, &appsv1.Deployment{ObjectMeta: in}, &corev1.ConfigMap{ObjectMeta: in}, &v1.Website{ObjectMeta: in}}
	for i, part := range parts {
		events := c.Events(t, part, "")
		wait.Go(func() {
			for e := range events {
				if obj, ok := e.Object.(client.Object); ok && e.Type == watch.Deleted {
					versions[i], _ = strconv.ParseInt(obj.GetResourceVersion(), 10, 64) //nolint:errcheck // 0 fails below
					return
				}
			}
		})
	}
	exampletest.Must(t, c.Delete(t.Context(), shop))
	wait.Wait()
	for i := range parts {
		if versions[i] == 0 || i > 0 && versions[i] < versions[i-1] {
			t.Errorf("Ingress, Deployment, ConfigMap and Website were deleted in the versions %d, want them in this order", versions)
		}
	}
}
