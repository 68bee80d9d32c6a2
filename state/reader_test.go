// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// optionReader records its options.
type optionReader struct {
	get  client.GetOptions
	list client.ListOptions
}

func (r *optionReader) Get(_ context.Context, _ client.ObjectKey, _ client.Object, opts ...client.GetOption) error {
	r.get.ApplyOptions(opts)
	return nil
}

func (r *optionReader) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	r.list.ApplyOptions(opts)
	return nil
}

func TestUncopied(t *testing.T) {
	reader := &optionReader{}
	if _, err := Get(t.Context(), Uncopied(reader), Selection{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	must(t, (Selection{Namespace: "ns"}).List(t.Context(), Uncopied(reader), &corev1.ConfigMapList{}))
	if got := reader.get.UnsafeDisableDeepCopy; got == nil || !*got {
		t.Error("the object that Get reads is copied")
	}
	if got := reader.list.UnsafeDisableDeepCopy; got == nil || !*got || reader.list.Namespace != "ns" {
		t.Error("the objects that List reads are copied, or are not those of the namespace")
	}
}
