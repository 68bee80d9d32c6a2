// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"maps"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// takesTurns is the mistake of two operators that want a child of the same name.
const takesTurns Bug = "set-two-operators"

func rivalMutants() []Mutant {
	m := mutantsOf(rivalWorkload)
	return []Mutant{m(takesTurns, "two operators make one object their own, in turns", "wrangler's apply: silent takeover", oracle.BoundedRequests, oracle.BecomesIdle)}
}

// rivalWorkload is the life of two operators: one keeps a ConfigMap for each Widget, the other one
// for each Secret, and the ConfigMaps have the same name. The right operators use package apply:
// the second one gets no ConfigMap until that of the first one is gone.
func rivalWorkload(bug Bug) sim.Workload {
	widget, secret := newWidget(), newSecret()
	return sim.Workload{
		Name: "rivals", Scheme: scheme, CRDs: definitions,
		Operator: asManager(func(mgr ctrl.Manager, _ *sim.Process) error {
			if err := completeRival[*Widget](mgr, "first", bug); err != nil {
				return err
			}
			return completeRival[*corev1.Secret](mgr, "second", bug)
		}),
		Script: func(w *sim.World) {
			w.Create(widget)
			w.Settle()
			w.Create(secret)
			w.Sleep(time.Minute) // no Settle: the refusal is the failure of a reconcile
			w.Delete(widget)
			w.Settle()
		},
	}
}

// completeRival makes an operator that keeps a ConfigMap for each T.
func completeRival[T client.Object](mgr ctrl.Manager, name string, bug Bug) error {
	owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if bug != Right {
		r := &rival{Client: mgr.GetClient(), name: name, owner: owner}
		return ctrl.NewControllerManagedBy(mgr).Named(name).For(owner).Owns(&corev1.ConfigMap{}).Complete(r)
	}
	return completeSet(mgr, name, owner, func(req *step.Request[T], want *apply.Set) { want.Add(contested(req.Object, name)) }, apply.Owns(&corev1.ConfigMap{}))
}

// contested returns the ConfigMap that both operators want.
func contested(owner client.Object, operator string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: "contested"}, Data: map[string]string{"of": operator}}
}

// rival is one of the operators without package apply.
type rival struct {
	client.Client
	name  string
	owner client.Object
}

func (r *rival) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	owner := r.owner.DeepCopyObject().(client.Object)
	if err := r.Get(ctx, req.NamespacedName, owner); err != nil || !owner.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	wanted, current := contested(owner, r.name), &corev1.ConfigMap{}
	if err := ctrl.SetControllerReference(owner, wanted, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.Create(ctx, wanted)
	case err != nil:
		return ctrl.Result{}, err
	case metav1.IsControlledBy(current, owner) && maps.Equal(current.Data, wanted.Data):
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Update(ctx, wanted) // the mistake: whatever controls it
}
