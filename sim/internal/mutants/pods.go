// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The mistakes of an operator that keeps a number of Pods for each Widget.
const (
	generatesNames Bug = "generates-names"
	scalesByStale  Bug = "scales-by-stale-list"
	countsByPrefix Bug = "counts-by-prefix"
	avoidsOrphans  Bug = "avoids-orphans"
)

func podMutants() []Mutant {
	m := mutantsOf(podWorkload)
	return []Mutant{
		m(generatesNames, "Pods have generated names, and are counted in a cache that may not have seen the last ones", "duplicates by generateName without expectations: many operators in Sieve (OSDI 2022)", oracle.SameWork, oracle.SameEnd),
		m(scalesByStale, "Pods are deleted because a Widget is smaller in a cache that may be old", "a broken quorum by a stale list: zookeeper-operator in Sieve (OSDI 2022)", oracle.SameWork, oracle.SameEnd),
		m(countsByPrefix, "Pods are counted by the beginning of their names, whose ever they are", "identities joined without a separator: owner bprod/we and prod/web", oracle.SameEnd, oracle.ForeignUntouched, oracle.SameWork),
		m(avoidsOrphans, "a name that an object with our labels has makes the operator choose another name, each time anew", "LeaderWorkerSet: a new ControllerRevision per reconcile while the name is taken", oracle.BoundedRequests, oracle.BecomesIdle),
	}
}

// podWorkload is the life of a Widget with Pods.
func podWorkload(bug Bug) sim.Workload {
	widget := newWidget()
	widget.Spec = WidgetSpec{Size: 2, Image: "nginx:1"}
	return sim.Workload{
		Name: "pods", Scheme: scheme, CRDs: definitions,
		Operator: asManager(func(mgr ctrl.Manager, p *sim.Process) error {
			r := &pods{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: bug}
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.Pod{}).Complete(r)
		}),
		Script: func(w *sim.World) {
			w.Create(widget)
			w.Settle()
			sim.Update(w, widget, func(x *Widget) { x.Spec.Size = 3 })
			w.Settle()
			sim.Update(w, widget, func(x *Widget) { x.Spec.Size = 1 })
			w.Settle()
			w.Delete(widget)
			w.Settle()
		},
	}
}

// pods keeps a number of Pods for each Widget.
type pods struct {
	client.Client
	live client.Reader
	bug  Bug
}

func (r *pods) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcileReady(ctx, r.Client, req, func(ctx context.Context, w *Widget) (metav1.Condition, error) {
		list := &corev1.PodList{}
		if err := r.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			return metav1.Condition{}, err
		}
		ours := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !r.owns(w, &p) || p.DeletionTimestamp != nil })
		wait, err := r.scale(ctx, w, ours)
		if wait {
			return metav1.Condition{Status: metav1.ConditionFalse, Reason: nameTaken, Message: "the name of a Pod is taken"}, err
		}
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready", Message: "all Pods are there"}, err
	})
}

func (r *pods) owns(w *Widget, p *corev1.Pod) bool {
	if r.bug == countsByPrefix {
		return strings.HasPrefix(p.Name, w.Name)
	}
	return metav1.IsControlledBy(p, w)
}

// scale creates the Pods that are missing, and deletes those too many.
func (r *pods) scale(ctx context.Context, w *Widget, ours []corev1.Pod) (wait bool, err error) {
	size := int(w.Spec.Size)
	if r.bug == generatesNames || r.bug == countsByPrefix {
		for n := len(ours); n < size; n++ {
			if err := r.Create(ctx, r.pod(w, "", w.Name+"-")); err != nil {
				return false, err
			}
		}
		for i := size; i < len(ours); i++ {
			if err := deleteThis(ctx, r, &ours[i]); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	if !exactly(w, ours) && r.bug != scalesByStale {
		// Nothing is done by an old size: the event of the new one is on its way.
		if now, err := current(ctx, r.live, w); err != nil || !now {
			return false, err
		}
	}
	has := map[string]bool{}
	for _, p := range ours {
		has[p.Name] = true
	}
	for n := range size {
		name := fmt.Sprintf("%s-%d", w.Name, n)
		if has[name] {
			continue
		}
		if err := r.Create(ctx, r.pod(w, name, "")); apierrors.IsAlreadyExists(err) {
			wait = true // it is another's, or the cache has not seen it yet
			if err := r.avoid(ctx, w, name); err != nil {
				return false, err
			}
		} else if err != nil {
			return false, err
		}
	}
	for i := range ours {
		var n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(ours[i].Name, w.Name+"-"), "%d", &n); err == nil && n < size {
			continue
		}
		if err := deleteThis(ctx, r, &ours[i]); err != nil {
			return wait, err
		}
	}
	return wait, nil
}

// avoid creates a Pod with another name if one with our label has the name: the mistake of
// avoidsOrphans.
func (r *pods) avoid(ctx context.Context, w *Widget, name string) error {
	if r.bug != avoidsOrphans {
		return nil
	}
	taken := &corev1.Pod{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, taken)
	if err != nil || taken.Labels["widget"] != w.Name || metav1.IsControlledBy(taken, w) {
		return client.IgnoreNotFound(err)
	}
	return r.Create(ctx, r.pod(w, "", w.Name+"-again-"))
}

// exactly reports whether there are just the Pods that are wanted.
func exactly(w *Widget, ours []corev1.Pod) bool {
	wanted := map[string]bool{}
	for n := range int(w.Spec.Size) {
		wanted[fmt.Sprintf("%s-%d", w.Name, n)] = true
	}
	for _, p := range ours {
		if !wanted[p.Name] {
			return false
		}
	}
	return len(ours) == len(wanted)
}

func (r *pods) pod(w *Widget, name, generate string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, GenerateName: generate, Labels: map[string]string{"widget": w.Name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: w.Spec.Image}}},
	}
	if err := ctrl.SetControllerReference(w, p, r.Scheme()); err != nil {
		panic(err) // the Widget is in the scheme, and in the namespace of the Pod
	}
	return p
}
