// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// limit is no operator: it does what is done in any case, and nothing to find out what to do. A
// Widget without a status is new, and gets its children, all at once, and its status; any other is
// converged. Its Widgets have their finalizer from the admission policy. What it measures is the
// least that an operator on controller-runtime can cost.
type limit struct{ client.Client }

// Reconcile writes the children and the status of a new Widget.
func (l *limit) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var w widget.Widget
	if err := l.Get(ctx, request.NamespacedName, &w); err != nil || !equality.Semantic.DeepEqual(w.Status, widget.Status{}) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var create []func() error
	for _, child := range []client.Object{ConfigMap(&w), Secret(&w), Service(&w)} {
		create = append(create, func() error {
			if err := controllerutil.SetControllerReference(&w, child, l.Scheme()); err != nil {
				return err
			}
			return client.IgnoreAlreadyExists(l.Create(ctx, child)) // of a stale cache
		})
	}
	if err := atOnce(create...); err != nil {
		return reconcile.Result{}, err
	}
	SetReady(&w)
	return reconcile.Result{}, l.Status().Update(ctx, &w)
}
