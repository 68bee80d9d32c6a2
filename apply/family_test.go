// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// childMeta returns the metadata of a child of the i-th owner, decoded: each text is its own.
func childMeta(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprint("site-", i),
		Labels: map[string]string{apply.SetLabel: fmt.Sprint("set-", i), "app": fmt.Sprint("site-", i)},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "example.com/v1", Kind: "Website", Name: fmt.Sprint("site-", i), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), Controller: ptr.To(true),
		}},
	}
}

func TestCacheTransformSharesWhatChildrenHaveInCommon(t *testing.T) {
	f := apply.CacheTransform()
	first := transformed(t, f, &corev1.ConfigMap{ObjectMeta: childMeta(1)})
	for _, tt := range []struct {
		name                 string
		change               func(*metav1.ObjectMeta)
		sameLabels, sameRefs bool
	}{
		{"of the same owner", func(*metav1.ObjectMeta) {}, true, true},
		{"with another label", func(m *metav1.ObjectMeta) { m.Labels["app"] = "other" }, false, true},
		{"with one label more", func(m *metav1.ObjectMeta) { m.Labels["tier"] = "web" }, false, true},
		{"with keys and values exchanged", func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"site-1": "app", "set-1": apply.SetLabel} }, false, true},
		{"of no controller", func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Controller = nil }, true, false},
		{"that blocks the deletion", func(m *metav1.ObjectMeta) { m.OwnerReferences[0].BlockOwnerDeletion = ptr.To(true) }, true, false},
		{"of an owner that was renamed", func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Name = "other" }, true, false},
		{"of another owner", func(m *metav1.ObjectMeta) { *m = childMeta(2) }, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: childMeta(1)}
			tt.change(&secret.ObjectMeta)
			want := secret.DeepCopy()
			got := transformed[client.Object](t, f, secret)
			if diff := cmp.Diff(client.Object(want), got); diff != "" {
				t.Errorf("it was changed (-want +got):\n%s", diff)
			}
			// A change that no one may make shows what is shared.
			first.Labels["probe"] = "x"
			first.OwnerReferences[0].Kind = "Probe"
			if shared := got.GetLabels()["probe"] != ""; shared != tt.sameLabels {
				t.Errorf("labels are shared: %v, want %v", shared, tt.sameLabels)
			}
			if shared := got.GetOwnerReferences()[0].Kind == "Probe"; shared != tt.sameRefs {
				t.Errorf("owner references are shared: %v, want %v", shared, tt.sameRefs)
			}
			delete(first.Labels, "probe")
			first.OwnerReferences[0].Kind = "Website"
		})
	}
}

// Three children of an object cost the heap of one set of labels and owner references.
func TestCacheTransformHeapOfAFamily(t *testing.T) {
	rings.Test(t, "takes a second")
	const n = 2000
	bytesPer := func(children int) int {
		f := apply.CacheTransform()
		kept := make([]*corev1.ConfigMap, 0, children*n)
		before := heap()
		for range children {
			for i := range n {
				kept = append(kept, transformed(t, f, &corev1.ConfigMap{ObjectMeta: childMeta(i)}))
			}
		}
		after := heap()
		runtime.KeepAlive(kept)
		return int(after-before) / n
	}
	one, three := bytesPer(1), bytesPer(3)
	t.Logf("bytes of heap: %d for one child, %d for three", one, three)
	if three-one > one {
		t.Errorf("two more children take %d bytes, the first one %d", three-one, one)
	}
}
