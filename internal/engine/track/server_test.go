// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// newServer returns an API server with Pods.
func newServer(t *testing.T, names ...string) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithGlobalResourceVersionCounter().WithStatusSubresource(&corev1.Pod{})
	for _, name := range names {
		b.WithObjects(pod(name))
	}
	return b.Build()
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

func get(t *testing.T, r client.Reader, name string) *corev1.Pod {
	t.Helper()
	obj := &corev1.Pod{}
	must(t, r.Get(t.Context(), key(name), obj))
	return obj
}

// label changes a Pod.
func label(t *testing.T, c client.Client, name, value string) *corev1.Pod {
	t.Helper()
	obj := get(t, c, name)
	metav1.SetMetaDataLabel(&obj.ObjectMeta, "tier", value)
	must(t, c.Update(t.Context(), obj))
	return obj
}

func tierPatch(value string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"`+value+`"}}}`))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same checks that got is want. What says of what, and may be empty in a test that checks one thing.
func same[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
