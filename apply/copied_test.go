// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/step"
)

func eachName(list client.ObjectList, do func(name string)) error {
	return meta.EachListItem(list, func(obj runtime.Object) error {
		do(obj.(client.Object).GetName())
		return nil
	})
}

// copyOf creates a copy of an object, as `kubectl get -o yaml | sed | kubectl apply` does.
func (c *cluster) copyOf(obj client.Object, namespace, name string, references bool) client.Object {
	copied := obj.DeepCopyObject().(client.Object)
	copied.SetNamespace(namespace)
	copied.SetName(name)
	copied.SetUID("")
	copied.SetResourceVersion("")
	copied.SetManagedFields(nil)
	if job, ok := copied.(*batchv1.Job); ok {
		job.Spec.Selector, job.Spec.Template.Labels = nil, nil // the API server sets them
	}
	if !references {
		copied.SetOwnerReferences(nil)
	}
	return c.create(copied)
}

func copyable() map[string]child {
	kinds := maps.Clone(children)
	tracked := kinds["tracked"]
	tracked.object = func() client.Object {
		cm := newConfigMap("x", "ours", "1")
		cm.Namespace = "kube-system"
		return cm
	}
	tracked.policy = nil
	kinds["tracked elsewhere"] = tracked
	return kinds
}

// A copy of a child has no owner: wherever it is, and whatever is done with the owner, it stays.
// One event says so.
func TestCopiesAreLeft(t *testing.T) {
	kinds := copyable()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, watched %t", kind, watched), func(t *testing.T) {
				c, in := kinds[kind], newCluster(t)
				in.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
				shop := in.shop("shop")
				recorder := events.NewFakeRecorder(100)
				start := func(build want) *operator {
					o := &operator{cluster: in, name: "shops", want: build, events: recorder}
					o.step = apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], set *apply.Set) error {
						o.want(req.Object, set)
						return nil
					}, c.options...)
					o.funcs.Delete = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
						if obj.GetName() != "x" {
							t.Errorf("%s/%s is deleted", obj.GetNamespace(), obj.GetName())
						}
						return c.Delete(ctx, obj, opts...)
					}
					if o.start(); watched {
						o.watch()
					}
					return o
				}
				first := start(c.build)
				first.mustSettle(shop)
				original := c.object()
				in.get(original, "x")
				copies := []client.Object{
					in.copyOf(original, original.GetNamespace(), "copy", false), in.copyOf(original, original.GetNamespace(), "copy-with-references", true),
					in.copyOf(original, "other", "x", false),
				}
				first.mustSettle(shop)
				start(func(*Shop, *apply.Set) {}).mustSettle(shop)
				if gone := c.object(); in.get(gone, "x") && kind != "once" {
					t.Error("the child that has left the set is there")
				}
				second := start(c.build)
				second.mustSettle(shop)
				in.delete(shop)
				_ = second.settle(shop)
				for _, obj := range copies {
					if obj.GetOwnerReferences() == nil && !in.get(obj, obj.GetName()) {
						t.Errorf("%s/%s is gone", obj.GetNamespace(), obj.GetName())
					}
				}
				said := 0
				for range len(recorder.Events) {
					if text := <-recorder.Events; strings.Contains(text, "other/x has the label of this set and is left") {
						said++
					}
				}
				if processes := 3; watched && (said == 0 || said > processes) {
					t.Errorf("%d events of %d processes", said, processes)
				}
			})
		}
	}
}

// A copy that stands where a child should be is refused. The remedy that is printed has it taken over.
func TestCopyOfAWantedName(t *testing.T) {
	for kind, c := range children {
		in := newCluster(t)
		shop := in.shop("shop")
		o := c.operatorOf(in, "shops", "Parts")
		o.mustSettle(shop)
		original := c.read(in)
		must(t, in.client.Delete(in.ctx, c.read(in), client.PropagationPolicy(metav1.DeletePropagationBackground)))
		in.copyOf(original, "", "x", false)
		if err := o.settle(shop); err == nil || !strings.Contains(err.Error(), "it is a copy, or was restored without its managed fields, and is not ours") {
			t.Errorf("%s: %v", kind, err)
		}
		in.patch(c.object(), adoptWord)
		o.mustSettle(shop)
	}
}

// A namespace that is copied as people do it stays as it is, beside the operator that keeps the
// original, whatever becomes of that: nothing of the copy is deleted, nor replaced.
func testCopiedNamespace(t *testing.T, plane *controlplane.ControlPlane, start func(*testing.T, string) *cluster) {
	t.Helper()
	for n, kept := range map[string][]any{"owned": nil, "tracked": {apply.Unowned}} {
		for _, owner := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with its owner %t", n, owner), func(t *testing.T) {
				name := fmt.Sprintf("copied-%s-%t", n, owner)
				from, to := start(t, name), start(t, name+"-to")
				parts := apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], set *apply.Set) error {
					set.Add(append([]any{newConfigMap("x", "size", fmt.Sprint(req.Object.Spec.Size)), apply.NoWait}, kept...)...)
					set.Add(append([]any{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}, StringData: map[string]string{"password": string(req.Object.UID)}}, apply.CreateOnly}, kept...)...)
					set.Add(append([]any{newClaim("x"), apply.NoWait}, kept...)...)
					return nil
				}, apply.Owns(&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.PersistentVolumeClaim{}), apply.Tracks(&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.PersistentVolumeClaim{}))
				run := func() (stop func()) {
					return from.run(t, plane.Config(), false, cache.Options{DefaultTransform: apply.CacheTransform()}, parts)
				}
				stop := run()
				shop := from.shop("shop")
				from.awaitShop(t, shop)

				copyNamespace(t, plane, from.namespace, to.namespace, owner)
				copies := to.state()
				if len(copies) != 3 {
					t.Fatalf("there are the copies %v", copies)
				}
				unchanged := func(when string) {
					t.Helper()
					time.Sleep(2 * time.Second) // for what is seen late
					if diff := cmp.Diff(copies, to.state()); diff != "" {
						t.Errorf("%s, of the copy (-want +got):\n%s", when, diff)
					}
				}
				unchanged("copied")
				from.patch(shop, `{"spec":{"size":2}}`)
				from.awaitShop(t, shop)
				unchanged("the original has changed")
				stop()
				stop = run()
				unchanged("restarted")
				must(t, from.client.Delete(from.ctx, shop, client.PropagationPolicy(metav1.DeletePropagationForeground)))
				for deadline := time.Now().Add(time.Minute); len(from.state()) > 0; time.Sleep(50 * time.Millisecond) {
					if !time.Now().Before(deadline) {
						t.Fatalf("the original is deleted, and there is %v", from.state())
					}
				}
				unchanged("the original is deleted")
				stop()
				if owner { // without its operator nothing holds it
					to.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"metadata":{"finalizers":null}}`)
					to.delete(&Shop{ObjectMeta: metav1.ObjectMeta{Namespace: to.namespace, Name: "shop"}})
				}
			})
		}
	}
}

// copyNamespace does what kubectl get | sed | kubectl apply does, with or without Shops.
func copyNamespace(t *testing.T, plane *controlplane.ControlPlane, from, to string, owner bool) {
	t.Helper()
	kinds := "configmaps,secrets,persistentvolumeclaims"
	if owner {
		kinds += ",shops"
	}
	manifests := kubectl(t, plane, "", "get", kinds, "-n", from, "-o", "yaml")
	for _, edit := range [][2]string{ // the API server or the garbage collector refuse a copy with these
		{`(?ms)^ +ownerReferences:.*?^ +uid:.*?$\n`, ""}, {`(?m)^ +(resourceVersion|uid):.*\n`, ""}, {`namespace: ` + from, `namespace: ` + to},
	} {
		manifests = regexp.MustCompile(edit[0]).ReplaceAllString(manifests, edit[1])
	}
	kubectl(t, plane, manifests, "apply", "-f", "-")
}

// awaitShop waits until the children of a Shop are as it wants them.
func (c *cluster) awaitShop(t *testing.T, shop *Shop) {
	t.Helper()
	for deadline := time.Now().Add(c.patience); ; time.Sleep(50 * time.Millisecond) {
		c.get(shop, shop.Name)
		ready, x := meta.FindStatusCondition(shop.Status.Conditions, "PartsReady"), newConfigMap("x")
		if ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == shop.Generation && c.get(x, "x") && x.Data["size"] == fmt.Sprint(shop.Spec.Size) {
			return
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("the Shop has %s", c.condition(shop))
		}
	}
}

// state returns the UIDs and versions of the children in the namespace.
func (c *cluster) state() map[string]string {
	c.t.Helper()
	all := map[string]string{}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.PersistentVolumeClaimList{}} {
		if err := c.client.List(c.ctx, list, client.InNamespace(c.namespace)); err != nil {
			c.t.Fatalf("listing: %v", err)
		}
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			if o := obj.(client.Object); o.GetName() == "x" {
				all[fmt.Sprintf("%T", obj)] = fmt.Sprintf("%s %s deleted %v", o.GetUID(), passwordOf(obj), o.GetDeletionTimestamp())
			}
			return nil
		})
	}
	return all
}

func passwordOf(obj runtime.Object) string {
	if secret, ok := obj.(*corev1.Secret); ok {
		return string(secret.Data["password"])
	}
	return ""
}

func newClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}
