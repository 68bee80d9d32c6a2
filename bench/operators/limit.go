// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// limit is no operator: it does what is done in any case, and nothing to find out what to do. A
// Widget without a status is new, and gets its children, all at once, and its status; any other is
// converged. Its Widgets have their finalizer from the admission policy. What it measures is the
// least that an operator on controller-runtime can cost.
type limit struct {
	client.Client
	begun sync.Map // UIDs of Widgets whose status the cache may not have yet
}

// Reconcile writes the children and the status of a new Widget.
func (l *limit) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var w widget.Widget
	if err := l.Get(ctx, request.NamespacedName, &w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if w.Status.ObservedGeneration != 0 {
		l.begun.Delete(w.UID)
		return reconcile.Result{}, nil
	}
	if _, begun := l.begun.LoadOrStore(w.UID, true); begun {
		return reconcile.Result{}, nil
	}
	var create []func() error
	for _, child := range []client.Object{ConfigMap(&w), Secret(&w), Service(&w)} {
		create = append(create, func() error {
			if err := controllerutil.SetControllerReference(&w, child, l.Scheme()); err != nil {
				return err
			}
			return client.IgnoreAlreadyExists(l.Create(ctx, child)) // after an error
		})
	}
	err := atOnce(create...)
	if err == nil {
		SetReady(&w)
		err = l.Status().Update(ctx, &w)
	}
	if err != nil {
		l.begun.Delete(w.UID) // the next reconcile begins again
	}
	return reconcile.Result{}, err
}
