// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// retriesLate returns a workload whose operator tries again three minutes after a failure, which is
// longer than the workload is quiet for. If it ignores failures, it does not try again.
func retriesLate(ignores bool) Workload {
	w := deploymentWorkload(nil)
	w.Quiet = time.Minute
	w.Operator = Manager(func(mgr ctrl.Manager, _ *Process) error {
		late := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](3*time.Minute, 3*time.Minute)
		return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
			WithOptions(controller.Options{RateLimiter: late}).Complete(reconcile.Func(
			func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				o := &operation{Client: mgr.GetClient(), obj: &appsv1.Deployment{}}
				if err := o.Get(ctx, r.NamespacedName, o.obj); err != nil || o.obj.DeletionTimestamp != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				if err := o.createChild(ctx); err != nil && !ignores {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, nil
			}))
	})
	w.Script = func(w *World) {
		w.Create(newDeployment())
		w.Settle()
	}
	return w
}

// An operator that has failed may wait for longer than the quiet time until it tries again. It is
// judged after that.
func TestSettleWaitsForRetries(t *testing.T) {
	violations, trace := violationsOf(t, retriesLate(false), "refuse write 1: 500")
	if len(violations) > 0 {
		t.Errorf("an operator that tries again later: %v\n%s", violations, trace)
	}
	violations, trace = violationsOf(t, retriesLate(true), "refuse write 1: 500")
	if !slices.ContainsFunc(violations, func(v oracle.Violation) bool {
		return strings.Contains(v.Text, "configmaps default/x-child is missing")
	}) {
		t.Errorf("an operator that does not try again: %v\n%s", violations, trace)
	}
}

// An orphan that the operator refuses is gone after its time, and what an owner has left is collected,
// also beside an operator that is not idle meanwhile: it counts its tries.
func TestAnOrphanBesideABusyOperator(t *testing.T) {
	w := deploymentWorkload(func(ctx context.Context, o *operation) error {
		if o.obj.DeletionTimestamp != nil {
			return nil
		}
		tries := ""
		if err := o.createChild(ctx); errors.Is(err, errTaken) {
			o.requeueAfter = 20 * time.Second
			tries = time.Now().Truncate(o.requeueAfter).String() // not another one when its own write wakes it
		} else if err != nil {
			return err
		}
		if o.obj.Annotations["tries"] == tries {
			return nil
		}
		o.obj.Annotations = map[string]string{"tries": tries}
		return o.Update(ctx, o.obj)
	})
	violations, trace := violationsOf(t, w, "leave an orphan before write 1")
	if len(violations) > 0 {
		t.Errorf("%v\n%s", violations, trace)
	}
}
