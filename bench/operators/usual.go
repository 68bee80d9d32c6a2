// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// usual is the operator as most people write it: an Update for the finalizer, CreateOrUpdate for
// each child, and an Update of the status at the end of each reconcile.
type usual struct{ client.Client }

// Reconcile brings a Widget closer to its desired state.
func (u *usual) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var w widget.Widget
	if err := u.Get(ctx, request.NamespacedName, &w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&w, widget.Finalizer) {
			return reconcile.Result{}, u.Update(ctx, &w)
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(&w, widget.Finalizer) {
		if err := u.Update(ctx, &w); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	name := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	configMap := &corev1.ConfigMap{ObjectMeta: name}
	if err := u.keep(ctx, &w, configMap, func() { configMap.Data = ConfigMap(&w).Data }); err != nil {
		return reconcile.Result{}, err
	}
	secret := &corev1.Secret{ObjectMeta: name}
	if err := u.keep(ctx, &w, secret, func() { secret.Data = Secret(&w).Data }); err != nil {
		return reconcile.Result{}, err
	}
	service := &corev1.Service{ObjectMeta: name}
	err := u.keep(ctx, &w, service, func() {
		spec := Service(&w).Spec
		service.Spec.ClusterIP, service.Spec.Selector, service.Spec.Ports = spec.ClusterIP, spec.Selector, spec.Ports
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	SetReady(&w)
	return reconcile.Result{}, u.Status().Update(ctx, &w)
}

func (u *usual) keep(ctx context.Context, w *widget.Widget, child client.Object, set func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, u.Client, child, func() error {
		set()
		child.SetLabels(labelsOf(w))
		return controllerutil.SetControllerReference(w, child, u.Scheme())
	})
	return err
}
