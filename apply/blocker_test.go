// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// The owner is reconciled when an object that is in its way changes, although nothing in that object
// leads to the owner. Other objects, and the next changes of this one, concern no owner.
func TestBlockerEnqueuesTheOwner(t *testing.T) {
	children := apply.Children("Parts", func(_ context.Context, _ *step.Request[*corev1.ConfigMap], want *apply.Set) error {
		want.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "taken"}})
		return nil
	}, apply.Owns(&corev1.Secret{}))
	named := children.Watches()[0].Mapped
	kind := schema.GroupKind{Kind: "ConfigMap"}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "taken"}}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}

	got := ctrlkittest.Do(t, children, &corev1.ConfigMap{}, ctrlkittest.WithObjects(theirs))
	if got.Err == nil || !strings.Contains(got.Err.Error(), "Secret default/taken exists, has no owner and is not ours") || len(got.Writes) > 0 {
		t.Fatalf("got %+v, want that the Secret is refused", got)
	}
	if after := failure.Classify(got.Err).RetryAfter; after > 0 {
		t.Errorf("it is tried again after %s, although its watch reports when it is gone", after)
	}
	if keys := named(other, kind); len(keys) > 0 {
		t.Errorf("another Secret enqueues %v", keys)
	}
	if diff := cmp.Diff([]client.ObjectKey{{Namespace: "default", Name: "test"}}, named(theirs, kind)); diff != "" {
		t.Errorf("the Secret that is in the way enqueues (-want +got):\n%s", diff)
	}
	if keys := named(theirs, kind); len(keys) > 0 {
		t.Errorf("its next change enqueues %v, without a reconcile that was refused again", keys)
	}
}
