// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/process"
)

// idled counts the calls of handlers that do nothing.
var idled atomic.Int64

// idle is what they all do.
func idle() (reconcile.Result, error) {
	idled.Add(1)
	return reconcile.Result{}, nil
}

// addControllers adds a controller for each handler, as one does with controller-runtime: they share
// a cache, and each has a queue of its own.
func addControllers(mgr ctrl.Manager, settings process.Settings) error {
	for i := range settings.Handlers {
		err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named(fmt.Sprintf("idle-%02d", i)).
			WithOptions(controller.Options{MaxConcurrentReconciles: settings.Workers}).Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return idle() }))
		if err != nil {
			return err
		}
	}
	return nil
}
