// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// copies returns a workload whose operator has a finalizer on each Deployment, and creates one beside
// that of the user. A stranger's Deployment of that name is one more to reconcile; if the operator
// takes it over, it makes that one its own.
func copies(takesOver bool) Workload {
	return deploymentWorkload(func(ctx context.Context, o *operation) error {
		if o.obj.DeletionTimestamp != nil {
			o.obj.Finalizers = nil
			return client.IgnoreNotFound(o.Update(ctx, o.obj))
		}
		if len(o.obj.Finalizers) == 0 {
			o.obj.Finalizers = []string{bucketFinalizer}
			if err := o.Update(ctx, o.obj); err != nil {
				return err
			}
		}
		if o.obj.Name != "x" {
			return nil
		}
		second := newDeployment()
		second.Name = "x-copy"
		if err := ctrl.SetControllerReference(o.obj, second, o.Scheme()); err != nil {
			return err
		}
		labels := maps.Clone(second.Labels)
		err := o.Get(ctx, client.ObjectKeyFromObject(second), second)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err != nil:
			second.Labels = labels
			return o.Create(ctx, second)
		case metav1.IsControlledBy(second, o.obj):
			return nil
		case !takesOver:
			return errTaken
		}
		second.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o.obj, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		return o.Update(ctx, second)
	})
}

// A stranger's object of a kind that the operator reconciles gets its finalizer, as any object of
// the kind. To take it over is wrong.
func TestStrangersOfTheKindThatIsReconciled(t *testing.T) {
	rings.Test(t, "simulates")
	const plan = "occupy the name before write 2"
	violations, trace := violationsOf(t, copies(false), plan)
	if len(violations) > 0 {
		t.Errorf("an operator that reconciles it: got %v\n%s", violations, trace)
	}
	if finalized := "update deployments.apps default/x-copy -> 200"; !strings.Contains(trace, finalized) {
		t.Errorf("the stranger's object gets no finalizer:\n%s", trace)
	}
	violations, trace = violationsOf(t, copies(true), plan)
	if !slices.ContainsFunc(violations, func(v oracle.Violation) bool { return v.Oracle == oracle.ForeignUntouched }) {
		t.Errorf("an operator that takes it over: got %v\n%s", violations, trace)
	}
}
