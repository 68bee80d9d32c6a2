// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// applyAlways applies its children on the server side in each reconcile, and leaves the comparison
// to the API server. It writes its status when it has changed.
type applyAlways struct{ client.Client }

// Reconcile brings a Widget closer to its desired state.
func (a *applyAlways) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var w widget.Widget
	if err := a.Get(ctx, request.NamespacedName, &w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopyObject().(*widget.Widget) //nolint:errcheck // a copy has the type
	if !w.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&w, widget.Finalizer) {
			return reconcile.Result{}, a.Patch(ctx, &w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(&w, widget.Finalizer) {
		if err := a.Patch(ctx, &w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	for _, child := range configurationsOf(&w) {
		if err := a.Apply(ctx, child, client.FieldOwner(controllerName), client.ForceOwnership); err != nil {
			return reconcile.Result{}, err
		}
	}
	SetReady(&w)
	if equality.Semantic.DeepEqual(before.Status, w.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, a.Status().Update(ctx, &w)
}

// configurationsOf returns the children as apply configurations, which have only what is set.
func configurationsOf(w *widget.Widget) []runtime.ApplyConfiguration {
	owner := metav1ac.OwnerReference().WithAPIVersion(widget.Resource.GroupVersion().String()).WithKind("Widget").
		WithName(w.Name).WithUID(w.UID).WithController(true).WithBlockOwnerDeletion(true)
	return []runtime.ApplyConfiguration{
		corev1ac.ConfigMap(w.Name, w.Namespace).WithLabels(labelsOf(w)).WithOwnerReferences(owner).WithData(ConfigMap(w).Data),
		corev1ac.Secret(w.Name, w.Namespace).WithLabels(labelsOf(w)).WithOwnerReferences(owner).WithData(Secret(w).Data),
		corev1ac.Service(w.Name, w.Namespace).WithLabels(labelsOf(w)).WithOwnerReferences(owner).WithSpec(
			corev1ac.ServiceSpec().WithClusterIP(corev1.ClusterIPNone).WithSelector(Service(w).Spec.Selector).
				WithPorts(corev1ac.ServicePort().WithName("http").WithPort(80))),
	}
}
