// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

func init() {
	maps.Copy(oracleCases, map[oracle.Name]oracleCase{
		oracle.EndsWell: {
			twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
				if wrong {
					return o.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "No_Name", Namespace: "default"}})
				}
				return o.createChild(ctx)
			}),
			want: "without a fault, the server refuses a write again and again: create configmaps default/No_Name: 422 Invalid: ",
		},
		oracle.NoOrphans: {
			twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
				if !wrong {
					return o.createChild(ctx)
				}
				return client.IgnoreAlreadyExists(o.Create(ctx, o.child()))
			}),
			want: "configmaps default/x-child is still there, although what the operator has created it for is gone",
		},
		oracle.DeletionEnds: {
			twins: cleansUp,
			want:  "deployments.apps default/x is being deleted and stays: the operator is idle, only its own finalizer test.ctrlkit.dev/bucket holds the object",
		},
		oracle.NoLateFinalizer: {
			twins: addsFinalizer,
			want:  "update deployments.apps default/x adds a finalizer to an object that is being deleted",
		},
		oracle.SameHistory: {
			plan: "refuse write 1: 500",
			twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
				failure := o.createChild(ctx)
				switch {
				case failure == nil:
					return o.condition(ctx, appsv1.DeploymentAvailable, corev1.ConditionTrue, false)
				case wrong && apierrors.IsInternalError(failure):
					o.obj.Status.CollisionCount = new(int32(1))
					return errors.Join(failure, o.Status().Update(ctx, o.obj))
				}
				return failure
			}),
			want: "at checkpoint 1 of 4, statuses record another history than without the fault:\n  ~ deployments.apps default/x status.collisionCount: got \"1\", want nothing",
		},
		oracle.ReadyWhenDone: {
			twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
				ready := func() error { return o.condition(ctx, appsv1.DeploymentAvailable, corev1.ConditionTrue, false) }
				if wrong {
					if err := ready(); err != nil {
						return err
					}
				}
				if err := o.createChild(ctx); err != nil {
					return err
				}
				return ready()
			}),
			want: "deployments.apps default/x reported Available=True before its child configmaps default/x-child was created",
		},
		oracle.CacheUntouched: {
			twins: func(wrong bool) Workload { return handlesEvents(wrong) },
			want:  `an object in a cache of the operator was changed in place, which every other reader of the cache sees: Deployment default/x: metadata.annotations.seen: "" became "true"`,
		},
	})
}

// addsFinalizer returns an operator that adds a finalizer, also during a deletion that another
// client holds, and its right twin.
func addsFinalizer(wrong bool) Workload {
	w := deploymentWorkload(func(ctx context.Context, o *operation) error {
		if o.obj.DeletionTimestamp == nil || wrong {
			if controllerutil.AddFinalizer(o.obj, bucketFinalizer) {
				return o.Update(ctx, o.obj)
			}
			return nil
		}
		if controllerutil.RemoveFinalizer(o.obj, bucketFinalizer) {
			return o.Update(ctx, o.obj)
		}
		return nil
	})
	w.Script = func(w *World) {
		x := newDeployment()
		x.Finalizers = []string{"example.com/hold"}
		w.Create(x)
		if !wrong {
			w.Settle()
		}
		w.Delete(x)
		w.Settle()
	}
	return w
}

// handlesEvents returns an operator whose predicate changes the object that it gets, and its right
// twin, which changes a copy.
func handlesEvents(wrong bool) Workload {
	w := deploymentWorkload(nil)
	w.Operator = Manager(func(mgr ctrl.Manager, p *Process) error {
		mark := predicate.NewPredicateFuncs(func(obj client.Object) bool {
			if !wrong {
				obj = obj.DeepCopyObject().(client.Object)
			}
			obj.SetAnnotations(map[string]string{"seen": "true"})
			return true
		})
		return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}, builder.WithPredicates(mark)).Complete(reconcile.Func(
			func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }))
	})
	return w
}

// An operator that does something by the clock is not accused when that falls into the time in which
// it is proved to be idle, of whatever length that is: the next period is no extra work.
func TestPeriodicOperatorsAreIdle(t *testing.T) {
	rings.Test(t, "simulates for a while")
	for quiet := 21 * time.Second; quiet < 59*time.Second; quiet += 4 * time.Second {
		w := deploymentWorkload(func(ctx context.Context, o *operation) error {
			now := time.Now()
			o.requeueAfter = time.Until(now.Truncate(time.Minute).Add(time.Minute))
			if o.obj.DeletionTimestamp != nil {
				o.requeueAfter = 0
				return nil
			}
			job := o.child()
			job.Name += strconv.FormatInt(now.Unix()/60, 10)
			if err := ctrl.SetControllerReference(o.obj, job, o.Scheme()); err != nil {
				return err
			}
			err := o.Get(ctx, client.ObjectKeyFromObject(job), job)
			if client.IgnoreNotFound(err) != nil || err == nil {
				return err
			}
			return o.Create(ctx, job)
		})
		w.Quiet = quiet
		w.Script = func(w *World) {
			w.Create(newDeployment())
			w.SleepUntil(130 * time.Second)
			w.Settle()
		}
		violations, trace := violationsOf(t, w, "resync and restart at checkpoint 1")
		if len(violations) > 0 {
			t.Errorf("quiet for %s: %v\n%s", quiet, violations, trace)
		}
	}
}

// cleansUp returns an operator that has something to clean up, and removes its finalizer after that.
// The wrong one does so only while the spec still has what it was for.
func cleansUp(wrong bool) Workload {
	return deploymentWorkload(func(ctx context.Context, o *operation) error {
		switch {
		case o.obj.DeletionTimestamp == nil && controllerutil.AddFinalizer(o.obj, bucketFinalizer):
			return o.Update(ctx, o.obj)
		case o.obj.DeletionTimestamp != nil && (!wrong || o.obj.Spec.Template.Spec.Containers[0].Image == "nginx:1"):
			controllerutil.RemoveFinalizer(o.obj, bucketFinalizer)
			return client.IgnoreNotFound(o.Update(ctx, o.obj))
		}
		return nil
	})
}
