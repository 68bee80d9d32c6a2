// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A controller that evades a name which a stranger has taken, as those of Deployments do, is not
// accused of a duplicate: it counts the collision, and makes the child under another name. One that
// makes a second child for a collision with its own first one, whose answer was lost, is.
func TestEvadedCollision(t *testing.T) {
	rings.Test(t, "simulates")
	for _, evadesItself := range []bool{false, true} {
		failed := false
		w := deploymentWorkload(func(ctx context.Context, o *operation) error {
			if o.obj.DeletionTimestamp != nil {
				return nil
			}
			count := int32(0)
			if o.obj.Status.CollisionCount != nil {
				count = *o.obj.Status.CollisionCount
			}
			hash := fnv.New32a()
			fmt.Fprint(hash, o.obj.Spec.Template.Spec.Containers[0].Image, count)
			child := o.child()
			child.Name, child.Data = fmt.Sprintf("x-%08x", hash.Sum32()), map[string]string{"key": "value"}
			if err := ctrl.SetControllerReference(o.obj, child, o.Scheme()); err != nil {
				return err
			}
			err := o.Create(ctx, child)
			if !apierrors.IsAlreadyExists(err) {
				failed = err != nil
				return err
			}
			there := &corev1.ConfigMap{}
			if err := o.live.Get(ctx, client.ObjectKeyFromObject(child), there); err != nil {
				return err
			}
			if mine := metav1.IsControlledBy(there, o.obj); mine && !(evadesItself && failed) {
				return nil
			}
			count++
			o.obj.Status.CollisionCount = &count
			return o.Status().Update(ctx, o.obj) // which wakes it again
		})
		plan := "occupy the name before write 1"
		if evadesItself {
			plan = "lose the answer of write 1: 500"
		}
		violations, trace := violationsOf(t, w, plan)
		if found := slices.ContainsFunc(violations, func(v oracle.Violation) bool { return v.Oracle == oracle.SameEnd }); found != evadesItself || !found && len(violations) > 0 {
			t.Errorf("evades itself %t: %v\n%s", evadesItself, violations, trace)
		}
	}
}
