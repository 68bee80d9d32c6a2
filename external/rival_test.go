// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit/sim"
)

// byHand is a reconciler as guides show it: a finalizer, an observation by the id in the status, a
// creation, and then the id is written to the status. It reports errors in a condition, and polls.
type byHand struct {
	client.Client
	depots *sim.ExternalClient
	named  bool // the system wants a name
}

const byHandFinalizer = "example.com/depot"

func (c identityClass) byHand(mgr ctrl.Manager, p *sim.Process) error {
	r := &byHand{Client: mgr.GetClient(), depots: p.External("depots"), named: c.system.Identity == sim.IdentityName}
	return ctrl.NewControllerManagedBy(mgr).For(&Depot{}).Complete(r)
}

func (r *byHand) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d := &Depot{}
	if err := r.Get(ctx, req.NamespacedName, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, d)
	}
	if controllerutil.AddFinalizer(d, byHandFinalizer) {
		return ctrl.Result{}, r.Update(ctx, d) // the event of it triggers the next reconcile
	}
	before := d.DeepCopyObject().(*Depot)
	err := r.ensure(ctx, d)
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: d.Generation}
	if err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", err.Error()
	}
	d.Status.ObservedGeneration = d.Generation
	meta.SetStatusCondition(&d.Status.Conditions, ready)
	if !reflect.DeepEqual(before.Status, d.Status) {
		if statusErr := r.Status().Update(ctx, d); statusErr != nil {
			return ctrl.Result{}, errors.Join(err, statusErr)
		}
	}
	return ctrl.Result{RequeueAfter: time.Minute}, err
}

// ensure creates or updates the resource.
func (r *byHand) ensure(ctx context.Context, d *Depot) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if d.Status.ID != "" {
		found, err := r.depots.Get(ctx, d.Status.ID)
		if err == nil && found.Spec["size"] != size(d) {
			return r.depots.Update(ctx, d.Status.ID, map[string]string{"size": size(d)})
		}
		if !errors.Is(err, sim.ErrNotFound) {
			return err
		}
	}
	creation := sim.Creation{Owner: d.UID, Tags: map[string]string{"owner": string(d.UID)}, Spec: map[string]string{"size": size(d)}}
	if r.named {
		creation.Name = "depot-" + string(d.UID)
	}
	made, err := r.depots.Create(ctx, creation)
	d.Status.ID = made.ID
	return err
}

// remove deletes the resource, and removes the finalizer.
func (r *byHand) remove(ctx context.Context, d *Depot) error {
	if !controllerutil.ContainsFinalizer(d, byHandFinalizer) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if d.Status.ID != "" {
		if err := r.depots.Delete(ctx, d.Status.ID); err != nil && !errors.Is(err, sim.ErrNotFound) {
			return err
		}
	}
	controllerutil.RemoveFinalizer(d, byHandFinalizer)
	return r.Update(ctx, d)
}
