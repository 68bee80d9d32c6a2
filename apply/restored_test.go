// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/step"
)

// An object that was restored from manifests has all its fields from another field manager, as a copy
// has: it takes a word. What leaves the set is removed from it all the same.
func TestRestoredObjectLosesWhatIsNotWanted(t *testing.T) {
	data := map[string]string{"stays": "1", "goes": "1"}
	children := apply.Children("Parts", func(_ context.Context, _ *step.Request[*corev1.ConfigMap], want *apply.Set) error {
		want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}, Data: data})
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	key := client.ObjectKey{Namespace: "default", Name: "child"}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner", UID: "1"}}
	first := ctrlkittest.Do(t, children, owner.DeepCopy())
	restored := &corev1.ConfigMap{}
	must(t, first.Client.Get(t.Context(), key, restored))
	restored.ManagedFields, restored.ResourceVersion, restored.OwnerReferences = nil, "", nil // their UIDs are others
	if got := ctrlkittest.Do(t, children, owner.DeepCopy(), ctrlkittest.WithObjects(restored.DeepCopy())); got.Err == nil {
		t.Error("a copy is taken over without a word")
	}
	restored.Annotations[apply.PolicyAnnotation] = string(apply.Adopt)

	delete(data, "goes")
	got := ctrlkittest.Do(t, children, owner.DeepCopy(), ctrlkittest.WithObjects(restored))
	now := &corev1.ConfigMap{}
	if err := got.Client.Get(t.Context(), key, now); err != nil || got.Err != nil {
		t.Fatal(err, got.Err)
	}
	if len(now.Data) != 1 || now.Data["stays"] != "1" || metav1.GetControllerOf(now) == nil {
		t.Errorf("the restored object has the data %v and the owners %v, want what the set has", now.Data, now.OwnerReferences)
	}
}
