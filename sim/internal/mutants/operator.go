// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// life is the script of a Widget that is created, changed, and deleted.
func life(change func(*Widget)) func(*sim.World) {
	widget := newWidget()
	return func(w *sim.World) {
		w.Create(widget)
		w.Settle()
		sim.Update(w, widget, change)
		w.Settle()
		w.Delete(widget)
		w.Settle()
	}
}

// patience is how often those try again who wait for a name. A process changes it before it starts.
var patience = 30 * time.Second

// nameTaken is the reason of a Widget that has to wait until a name is free. Nothing reports when.
const nameTaken = "NameTaken"

// reconcileReady lets work do the work for the Widget of a request, and writes the condition Ready
// that it returns.
func reconcileReady(ctx context.Context, c client.Client, req ctrl.Request, work func(context.Context, *Widget) (metav1.Condition, error)) (ctrl.Result, error) {
	w := &Widget{}
	if err := c.Get(ctx, req.NamespacedName, w); err != nil || w.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy().Status
	ready, err := work(ctx, w)
	if err != nil {
		ready = metav1.Condition{Status: metav1.ConditionFalse, Reason: "Failed", Message: reason(err)}
	}
	ready.Type, ready.ObservedGeneration = "Ready", w.Generation
	w.Status.ObservedGeneration = w.Generation
	meta.SetStatusCondition(&w.Status.Conditions, ready)
	if statusErr := saveStatus(ctx, c, w, before); err == nil {
		err = statusErr
	}
	if err == nil && ready.Reason == nameTaken {
		return ctrl.Result{RequeueAfter: patience}, nil
	}
	return ctrl.Result{}, err
}

// saveStatus writes the status if it has changed.
func saveStatus(ctx context.Context, c client.Client, w *Widget, before WidgetStatus) error {
	if sameStatus(w.Status, before) {
		return nil
	}
	return c.Status().Update(ctx, w)
}

// deleteThis deletes an object, and not another one that has its name by now.
func deleteThis(ctx context.Context, c client.Writer, obj client.Object) error {
	return client.IgnoreNotFound(c.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())}))
}

// current reports whether the Widget is really as the cache has it. If not, the event of the change
// is on its way.
func current(ctx context.Context, live client.Reader, w *Widget) (bool, error) {
	now := &Widget{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(w), now); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return now.UID == w.UID && now.Generation == w.Generation, nil
}

// requestsOf requests the Widgets of a namespace that needs says yes to.
func requestsOf(ctx context.Context, c client.Reader, namespace string, needs func(*Widget) bool) []reconcile.Request {
	list := &WidgetList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if needs(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// usersOf returns the Widgets that need a Secret.
func usersOf(ctx context.Context, c client.Reader, secret client.Object) []reconcile.Request {
	return requestsOf(ctx, c, secret.GetNamespace(), func(w *Widget) bool { return w.Spec.Secret == secret.GetName() })
}

// newSet returns the engine of a right operator that keeps a set of objects for each T.
func newSet[T client.Object](mgr ctrl.Manager, name string, declare func(context.Context, *step.Request[T], *apply.Set) error, options ...apply.SetOption) (*step.Engine[T], error) {
	return step.New(step.Options[T]{
		Name: name, Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(name),
	}, apply.Children("Parts", declare, options...))
}

// completeSet makes a right operator that keeps a set of objects for each T.
func completeSet[T client.Object](mgr ctrl.Manager, name string, owner T, declare func(*step.Request[T], *apply.Set), options ...apply.SetOption) error {
	engine, err := newSet(mgr, name, func(_ context.Context, req *step.Request[T], want *apply.Set) error {
		declare(req, want)
		return nil
	}, options...)
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(owner))
}
