// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/journal"
)

// watching returns a client whose record knows that Pods and AllowLists are watched.
func watching() *Client {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	return NewClient(c, &Record{Watched: NewWatched([]schema.GroupKind{{Kind: "Pod"}, {Group: "example.com", Kind: "AllowList"}}, nil)})
}

func anyKind(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
	return u
}

// One read of each kind is kept: the first, or that of an object which is not there.
func TestUnwatchedReadsOfARecord(t *testing.T) {
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "x")
	secret := func(name string) journal.Object {
		return journal.Object{Kind: "Secret", Namespace: "default", Name: name}
	}
	for _, test := range []struct {
		name string
		read func(note func(obj runtime.Object, name string, err error))
		want []UnwatchedRead
	}{
		{"watched kinds", func(note func(runtime.Object, string, error)) {
			note(&corev1.Pod{}, "a", nil)
			note(&corev1.PodList{}, "", nil)
			note(anyKind("AllowList"), "a", nil)
		}, nil},
		{"the first", func(note func(runtime.Object, string, error)) {
			note(&corev1.Secret{}, "a", nil)
			note(&corev1.Secret{}, "b", nil)
			note(&corev1.SecretList{}, "", nil)
		}, []UnwatchedRead{{Object: secret("a")}}},
		{"what is not there", func(note func(runtime.Object, string, error)) {
			note(&corev1.Secret{}, "a", nil)
			note(&corev1.Secret{}, "b", absent)
			note(&corev1.Secret{}, "c", absent)
		}, []UnwatchedRead{{Object: secret("b")}}},
		{"a list", func(note func(runtime.Object, string, error)) { note(&corev1.SecretList{}, "", nil) }, []UnwatchedRead{{Object: secret("")}}},
		{"types that stand for any kind", func(note func(runtime.Object, string, error)) {
			note(anyKind("DenyList"), "a", nil)
			note(anyKind("Other"), "b", nil)
		}, []UnwatchedRead{
			{Object: journal.Object{Group: "example.com", Kind: "DenyList", Namespace: "default", Name: "a"}},
			{Object: journal.Object{Group: "example.com", Kind: "Other", Namespace: "default", Name: "b"}},
		}},
		{"a failure", func(note func(runtime.Object, string, error)) {
			note(&corev1.Secret{}, "a", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil))
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := watching()
			for range 2 { // the second time it knows the types
				test.read(func(obj runtime.Object, name string, err error) {
					c.noteUnwatched(t.Context(), obj, client.ObjectKey{Namespace: "default", Name: name}, err)
				})
			}
			same(t, "record.Unwatched", test.want, c.record.Unwatched(), cmpopts.IgnoreUnexported(UnwatchedRead{}))
		})
	}
}

// To find out that a kind is watched costs no memory: it is asked at each read.
func TestReadsOfWatchedKindsAllocateNothing(t *testing.T) {
	c, pod, list, any := watching(), &corev1.Pod{}, &corev1.PodList{}, anyKind("AllowList")
	ctx, key := t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}
	for _, obj := range []runtime.Object{pod, list, any} {
		if n := testing.AllocsPerRun(100, func() { c.noteUnwatched(ctx, obj, key, nil) }); n > 1 || n > 0 && obj != runtime.Object(any) {
			t.Errorf("%T: %v allocations", obj, n)
		}
	}
}

// BenchmarkWatched asks whether a kind is watched.
func BenchmarkWatched(b *testing.B) {
	c, pod := watching(), &corev1.Pod{}
	key := client.ObjectKey{Namespace: "default", Name: "a"}
	b.ReportAllocs()
	for b.Loop() {
		c.noteUnwatched(b.Context(), pod, key, nil)
	}
}

// Reconciles of several objects read at the same time.
func TestWatchedIsSafeForConcurrentUse(t *testing.T) {
	c := watching()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, obj := range []runtime.Object{&corev1.Pod{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.SecretList{}, &corev1.Node{}} {
				c.noteUnwatched(t.Context(), obj, client.ObjectKey{Namespace: "default", Name: "a"}, nil)
			}
		})
	}
	all.Wait()
	if got := c.record.Unwatched(); len(got) != 3 {
		t.Errorf("read and not watched: %v", got)
	}
}
