// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ByHand is the operator as it is usually written with controller-runtime: an Update for the
// finalizer, CreateOrUpdate for each child, and an Update of the status at the end of each
// reconcile.
type ByHand struct {
	Client   client.Client
	External *External
}

// Reconcile brings a Widget closer to its desired state.
func (b *ByHand) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var w Widget
	if err := b.Client.Get(ctx, request.NamespacedName, &w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		b.External.Remove(w.UID)
		if controllerutil.RemoveFinalizer(&w, Finalizer) {
			return reconcile.Result{}, b.Client.Update(ctx, &w)
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(&w, Finalizer) {
		if err := b.Client.Update(ctx, &w); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	b.External.Keep(w.UID)
	for _, want := range children(&w) {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, b.Client, child, func() error {
			child.Labels, child.Data = want.Labels, want.Data
			return own(&w, child, b.Client.Scheme())
		})
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("ConfigMap %q: %w", want.Name, err)
		}
	}
	describe(&w)
	return reconcile.Result{}, b.Client.Status().Update(ctx, &w)
}

// describe sets the status of a Widget whose children exist, like the engine.
func describe(w *Widget) {
	w.Status.Children, w.Status.ObservedGeneration = 3, w.Generation
	for _, c := range []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"},
		{Type: "Reconciling", Status: metav1.ConditionFalse, Reason: "Ready"},
		{Type: "Stalled", Status: metav1.ConditionFalse, Reason: "Ready"},
		{Type: ChildrenReady, Status: metav1.ConditionTrue, Reason: "AllThere"},
	} {
		c.ObservedGeneration = w.Generation
		meta.SetStatusCondition(&w.Status.Conditions, c)
	}
}

// CarefulByHand is written by hand to save requests: it compares before each write, also of the
// status.
type CarefulByHand struct {
	Client   client.Client
	External *External
}

// Reconcile brings a Widget closer to its desired state, and writes only differences.
func (b *CarefulByHand) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var w Widget
	if err := b.Client.Get(ctx, request.NamespacedName, &w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopyObject().(*Widget) //nolint:errcheck // a copy has the type
	if !w.DeletionTimestamp.IsZero() {
		b.External.Remove(w.UID)
		if controllerutil.RemoveFinalizer(&w, Finalizer) {
			return reconcile.Result{}, b.Client.Patch(ctx, &w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(&w, Finalizer) {
		if err := b.Client.Patch(ctx, &w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	b.External.Keep(w.UID)
	for _, want := range children(&w) {
		if err := b.keep(ctx, &w, want); err != nil {
			return reconcile.Result{}, err
		}
	}
	describe(&w)
	if equality.Semantic.DeepEqual(before.Status, w.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, b.Client.Status().Update(ctx, &w)
}

// keep creates or updates a child.
func (b *CarefulByHand) keep(ctx context.Context, w *Widget, want *corev1.ConfigMap) error {
	if err := own(w, want, b.Client.Scheme()); err != nil {
		return err
	}
	var got corev1.ConfigMap
	err := b.Client.Get(ctx, client.ObjectKeyFromObject(want), &got)
	if apierrors.IsNotFound(err) {
		return b.Client.Create(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", want.Name, err)
	}
	// The defaults of the API server count as desired.
	want.TypeMeta, want.UID, want.ResourceVersion, want.Generation = got.TypeMeta, got.UID, got.ResourceVersion, got.Generation
	want.CreationTimestamp, want.ManagedFields = got.CreationTimestamp, got.ManagedFields
	if equality.Semantic.DeepEqual(&got, want) {
		return nil
	}
	return b.Client.Update(ctx, want)
}
