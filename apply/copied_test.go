// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
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

// A copy of a child has no owner: wherever it is, and whatever is done with the owner, it stays. One event
// says so.
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
