// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// forgetsFormerKind is the mistake of an operator whose second version has another kind of child
// than the first one.
const forgetsFormerKind Bug = "set-forgets-former-kind"

func upgradeMutants() []Mutant {
	m := mutantsOf(upgradeWorkload)
	return []Mutant{m(forgetsFormerKind, "a new version has another kind of child, and leaves those of the old kind", "operators that rename a kind between versions", oracle.NoOrphans)}
}

// upgradeWorkload is the life of a Widget with a child in another namespace: version 1 of the
// operator creates a ConfigMap, version 2 a Secret. The right operator uses package apply. A label
// of that namespace says which version is installed. The garbage collector deletes neither child:
// with an owner reference, a forgotten ConfigMap would be no orphan.
func upgradeWorkload(bug Bug) sim.Workload {
	widget, release := newWidget(), newRelease()
	return sim.Workload{
		Name: "upgrade", Scheme: scheme, CRDs: definitions,
		Objects: []client.Object{release},
		Operator: func(ctx context.Context, p *sim.Process) error {
			for {
				if err := runInstalled(ctx, p, bug); err != nil || ctx.Err() != nil {
					return err
				}
			}
		},
		Script: func(w *sim.World) {
			w.Create(widget)
			w.Settle()
			sim.Update(w, release, func(n *corev1.Namespace) { n.Labels["version"] = "2" })
			w.Settle()
			w.Delete(widget)
			w.Settle()
		},
	}
}

func newRelease() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Labels: map[string]string{"version": "1"}}}
}

// runInstalled runs the version that is installed, until another one is.
func runInstalled(ctx context.Context, p *sim.Process, bug Bug) error {
	mgr, err := newManager(p)
	if err != nil {
		return err
	}
	release := newRelease()
	for mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(release), release) != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(time.Second)
	}
	var child client.Object = &corev1.ConfigMap{}
	options := []apply.SetOption{apply.Tracks(&corev1.ConfigMap{})}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if release.Labels["version"] == "2" {
		child = &corev1.Secret{}
		options = []apply.SetOption{apply.Tracks(&corev1.Secret{}), apply.Formerly(&corev1.ConfigMap{})}
	} else if err := watchRelease(mgr, stop); err != nil {
		return err
	}
	if bug == Right {
		err = completeSet(mgr, "upgraded", &Widget{}, func(req *step.Request[*Widget], want *apply.Set) { want.Add(elsewhere(child, req.Object)) }, options...)
	} else {
		err = ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Complete(&upgraded{Client: mgr.GetClient(), child: child})
	}
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// watchRelease stops version 1 when version 2 is installed.
func watchRelease(mgr manager.Manager, stop func()) error {
	return ctrl.NewControllerManagedBy(mgr).Named("release").For(&corev1.Namespace{}).Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		release := newRelease()
		if req.NamespacedName != client.ObjectKeyFromObject(release) {
			return ctrl.Result{}, nil
		}
		err := mgr.GetClient().Get(ctx, req.NamespacedName, release)
		if err == nil && release.Labels["version"] == "2" {
			stop()
		}
		return ctrl.Result{}, err
	}))
}

// elsewhere returns the child of a Widget, of a kind.
func elsewhere(kind client.Object, w *Widget) client.Object {
	child := kind.DeepCopyObject().(client.Object)
	child.SetNamespace("elsewhere")
	child.SetName(w.Name)
	return child
}

// upgraded is a version of the operator without package apply.
type upgraded struct {
	client.Client
	child client.Object
}

const upgradedFinalizer = "mutants.sim.ctrlkit.dev/upgraded"

func (r *upgraded) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	child := elsewhere(r.child, w)
	if !w.DeletionTimestamp.IsZero() { // the mistake: a child of the former kind is not deleted
		if err := client.IgnoreNotFound(r.Delete(ctx, child)); err != nil || !controllerutil.RemoveFinalizer(w, upgradedFinalizer) {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, w))
	}
	if controllerutil.AddFinalizer(w, upgradedFinalizer) {
		return ctrl.Result{}, r.Update(ctx, w)
	}
	err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
	if apierrors.IsNotFound(err) {
		err = r.Create(ctx, child)
	}
	return ctrl.Result{}, err
}
