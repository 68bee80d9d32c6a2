// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// Two controllers share a client, which holds a mutex while it looks up a resource. When they are
// killed before it has, the run ends as usual.
func TestKilledBeforeAResourceIsKnown(t *testing.T) {
	rings.Test(t, "simulates for a while")
	controller := func(mgr ctrl.Manager, name string, child func(m metav1.ObjectMeta) client.Object) error {
		return ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).Complete(
			reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				meta := metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}
				if err := mgr.GetClient().Get(ctx, r.NamespacedName, &corev1.ConfigMap{}); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				err := mgr.GetClient().Create(ctx, child(meta))
				return ctrl.Result{}, client.IgnoreAlreadyExists(err)
			}))
	}
	workload := Workload{
		Operator: Manager(func(mgr ctrl.Manager, _ *Process) error {
			err := controller(mgr, "secrets", func(m metav1.ObjectMeta) client.Object { return &corev1.Secret{ObjectMeta: m} })
			if err != nil {
				return err
			}
			return controller(mgr, "accounts", func(m metav1.ObjectMeta) client.Object { return &corev1.ServiceAccount{ObjectMeta: m} })
		}),
		Script: func(w *World) {
			w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
			w.Settle()
		},
	}
	for _, plan := range []string{"crash before write 1", "crash before write 2"} {
		violations, _ := violationsOf(t, workload, plan)
		for _, v := range violations {
			if v.Oracle == oracle.BecomesIdle {
				t.Errorf("%s: %s", plan, v.Text)
			}
		}
	}
}
