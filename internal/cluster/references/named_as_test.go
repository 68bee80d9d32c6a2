// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package references_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
)

// An object is known by other keys than its own, and who names it by several is there once.
func TestNamedAs(t *testing.T) {
	index := &references.Index{
		Named: func(client.Object) []client.ObjectKey { return []client.ObjectKey{{Name: "s"}, {Name: "color=red"}} },
		NamedAs: func(client.Object) []client.ObjectKey {
			return []client.ObjectKey{{Namespace: "default", Name: "color=red"}}
		},
	}
	named := func(namespace, name string) int {
		return len(index.Naming(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
	}
	by := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	index.Create(event.CreateEvent{Object: by})
	if named("default", "s") != 1 || named("default", "other") != 1 {
		t.Error("it is not found by its own key, or by another one, or twice")
	}
	index.Delete(event.DeleteEvent{Object: by})
	if named("default", "s")+named("default", "other") != 0 {
		t.Error("what names it is gone")
	}
}
