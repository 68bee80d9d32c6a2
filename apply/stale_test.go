// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// An object that the cache does not have yet is neither taken over nor created twice: that of
// another owner is refused, and nothing is written to it.
func TestStaleCacheDoesNotTakeOver(t *testing.T) {
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*corev1.ReplicationController], want *apply.Set) error {
		want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "taken"}, Data: map[string]string{"whose": "ours"}})
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "taken"}} // no field of it conflicts with ours
	stale := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if _, typed := obj.(*corev1.ConfigMap); typed { // the live read is one of an unstructured object
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
		}
		return c.Get(ctx, key, obj, opts...)
	}}
	got := ctrlkittest.Do(t, parts, &corev1.ReplicationController{}, ctrlkittest.WithObjects(theirs), ctrlkittest.WithInterceptor(stale))
	if got.Err == nil || !strings.Contains(got.Err.Error(), "ConfigMap default/taken exists, has no owner and is not ours") {
		t.Errorf("got error %v", got.Err)
	}
	if after := failure.Classify(got.Err).RetryAfter; after != 5*time.Minute { // no event may report that it is gone
		t.Errorf("it is tried again after %s", after)
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	must(t, got.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), now))
	if data, _, _ := unstructured.NestedStringMap(now.Object, "data"); len(data) > 0 || len(now.GetLabels()) > 0 {
		t.Errorf("the ConfigMap has %v and labels %v", data, now.GetLabels())
	}
}

// The end of an object that the cache never had is no event: it is polled for. The end of one that
// the cache has is reported by its watch.
func TestStaleCacheMissesTheEndOfAnObject(t *testing.T) {
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*corev1.ReplicationController], want *apply.Set) error {
		want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "leaves"}})
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	leaves := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "leaves", Finalizers: []string{"example.com/hold"}}}
	leaves.OwnerReferences = []metav1.OwnerReference{{ // a predecessor of the owner: the garbage collector is deleting it
		APIVersion: "v1", Kind: "ReplicationController", Name: "test", UID: "predecessor", Controller: new(true),
	}}
	for _, stale := range []bool{false, true} {
		funcs := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, typed := obj.(*corev1.ConfigMap); typed && stale { // the live read is one of an unstructured object
				return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		}}
		got := ctrlkittest.Do(t, parts, &corev1.ReplicationController{}, ctrlkittest.WithObjects(leaves.DeepCopy()), ctrlkittest.WithInterceptor(funcs))
		if !strings.Contains(strings.Join(got.Waits, "\n"), "to be gone") || got.After > 0 != stale {
			t.Errorf("stale %t: got %+v", stale, got)
		}
	}
}
