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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/condition/conditiontest"
	"github.com/ctrlkit/ctrlkit/controlplane"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// checkTaken gives the Website blog its Secret: it continues, and finds that a name is taken, until
// the owner of the object gives it away.
func checkTaken(t *testing.T, user client.WithWatch, theirs *corev1.ConfigMap) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog-credentials"}}
	if err := user.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	blog := await(t, user, "blog", func(site *v1.Website) bool { return reason(site, condition.Stalled) == step.ReasonOwnedByAnother })
	conditiontest.Check(t, blog)
	const message = "ConfigMap default/blog exists, has no owner and is not ours: delete it, or allow it to be taken over with the annotation apply.ctrlkit.dev/policy: adopt"
	if got := meta.FindStatusCondition(blog.Status.Conditions, "PartsReady"); got == nil || got.Message != message {
		t.Errorf("PartsReady is %+v, want the message %q", got, message)
	}
	var now corev1.ConfigMap
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(theirs), &now); err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the foreign ConfigMap: version %s and error %v, want that it is untouched", now.ResourceVersion, err)
	}

	patch(t, user, theirs, `{"metadata":{"annotations":{"apply.ctrlkit.dev/policy":"adopt"}}}`)
	await(t, user, "blog", func(site *v1.Website) bool { return reason(site, condition.Ready) == condition.ReasonReady })
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(theirs), &now); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(&now, blog) || now.UID != theirs.UID || now.Data["index.html"] == "" {
		t.Errorf("the adopted ConfigMap: %+v, want the content and the owner reference of the Website", now)
	}
}

// checkRepair deletes a part, and edits another one by hand.
func checkRepair(t *testing.T, user client.WithWatch, shop *v1.Website) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
		t.Fatal(err)
	}
	deleted := service.UID
	if err := user.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	awaitPart(t, user, &corev1.ServiceList{}, shop, func(e watch.EventType, s *corev1.Service) bool { return e != watch.Deleted && s.UID != deleted })

	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	patch(t, user, content, `{"data":{"index.html":"edited by hand"}}`)
	awaitPart(t, user, &corev1.ConfigMapList{}, shop, func(_ watch.EventType, c *corev1.ConfigMap) bool {
		return maps.Equal(c.Data, shop.Spec.Content)
	})
}

// checkSwitches switches parts off, and one of them on again.
func checkSwitches(t *testing.T, user client.WithWatch) {
	t.Helper()
	shop := &v1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
	patch(t, user, shop, `{"spec":{"public":false,"priority":null}}`)
	ready := func(site *v1.Website) bool {
		return site.Generation >= shop.Generation && reason(site, condition.Ready) == condition.ReasonReady
	}
	now := await(t, user, "shop", ready)
	for _, part := range []client.Object{
		&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "default.shop-100"}},
	} {
		if err := user.Get(t.Context(), client.ObjectKeyFromObject(part), part); !apierrors.IsNotFound(err) {
			t.Errorf("%T, which the spec does not ask for any more: error %v, want that it is gone", part, err)
		}
	}
	for key := range now.Annotations {
		if strings.HasPrefix(key, "tracked.apply.ctrlkit.dev/") {
			t.Errorf("the annotation %s=%s names a part that is gone", key, now.Annotations[key])
		}
	}
	patch(t, user, shop, `{"spec":{"public":true}}`)
	await(t, user, "shop", ready)
}

// checkRestart starts the operator anew: it reconciles both Websites, and writes nothing.
func checkRestart(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	dns := &reportingDNS{DNS: newMemoryDNS(), hosts: make(chan string, 10)}
	writes, stop := start(t, plane, dns)
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
func checkDeletion(t *testing.T, user client.WithWatch, shop *v1.Website) {
	t.Helper()
	var (
		wait     sync.WaitGroup
		versions [4]int64 // in which a part was deleted: versions grow
	)
	parts := []client.ObjectList{&networkingv1.IngressList{}, &appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &v1.WebsiteList{}}
	for i, list := range parts {
		w := watchPart(t, user, list, shop)
		wait.Go(func() {
			defer w.Stop()
			for e := range w.ResultChan() {
				if obj, ok := e.Object.(client.Object); ok && e.Type == watch.Deleted {
					versions[i], _ = strconv.ParseInt(obj.GetResourceVersion(), 10, 64) //nolint:errcheck // 0 fails below
					return
				}
			}
		})
	}
	if err := user.Delete(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	for i := range parts {
		if versions[i] == 0 || i > 0 && versions[i] < versions[i-1] {
			t.Errorf("Ingress, Deployment, ConfigMap and Website were deleted in the versions %d, want them in this order", versions)
		}
	}
}

func patch(t *testing.T, user client.Client, obj client.Object, change string) {
	t.Helper()
	if err := user.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner("by-hand")); err != nil {
		t.Fatal(err)
	}
}

// awaitPart returns when a part of a Website that has its name is as wanted.
func awaitPart[T client.Object](t *testing.T, user client.WithWatch, list client.ObjectList, site *v1.Website, done func(watch.EventType, T) bool) {
	t.Helper()
	w := watchPart(t, user, list, site)
	defer w.Stop()
	for e := range w.ResultChan() {
		if obj, ok := e.Object.(T); ok && done(e.Type, obj) {
			return
		}
	}
	t.Fatalf("the watch ended before the %T was as wanted", list)
}

func watchPart(t *testing.T, user client.WithWatch, list client.ObjectList, site *v1.Website) watch.Interface {
	t.Helper()
	w, err := user.Watch(t.Context(), list, client.InNamespace(site.Namespace), client.MatchingFields{"metadata.name": site.Name})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
