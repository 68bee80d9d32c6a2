// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
)

// unwatchedPods is the mistake of an operator whose status depends on the children of its children.
const unwatchedPods Bug = "unwatched-pods"

func fleetMutants() []Mutant {
	m := mutantsOf(fleetWorkload)
	return []Mutant{m(unwatchedPods, "the status is computed from Pods, which are not watched", "LeaderWorkerSet: a status that is stuck for good", oracle.SameEnd)}
}

// fleetWorkload is the life of a Widget with a ReplicaSet, which is ready when the Pods are.
func fleetWorkload(bug Bug) sim.Workload {
	sets := playedWorkloads()[1]
	w := sets.workload(Right)
	w.Name = "fleet"
	w.Operator = asManager(func(mgr ctrl.Manager, _ *sim.Process) error {
		r := &caretaker{Client: mgr.GetClient(), played: sets, countsPods: true}
		b := ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&appsv1.ReplicaSet{})
		if bug != unwatchedPods {
			b = b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(widgetOf))
		}
		return b.Complete(r)
	})
	return w
}

// widgetOf returns the Widget that a Pod is for.
func widgetOf(_ context.Context, pod client.Object) []reconcile.Request {
	name, ok := pod.GetLabels()["widget"]
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// podsAreReady reports whether a ReplicaSet has as many ready Pods as the Widget wants.
func (r *caretaker) podsAreReady(ctx context.Context, w *Widget, set client.Object) (bool, error) {
	list := &corev1.PodList{}
	if err := r.List(ctx, list, client.InNamespace(w.Namespace), client.MatchingLabels{"widget": w.Name}); err != nil {
		return false, err
	}
	ready := int32(0)
	for _, pod := range list.Items {
		if isPodReady(&pod) && pod.DeletionTimestamp == nil && metav1.IsControlledBy(&pod, set) {
			ready++
		}
	}
	return ready == w.Spec.Size, nil
}
