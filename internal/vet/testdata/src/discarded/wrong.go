// Package discarded makes the mistakes that the analyzer is for.
package discarded

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

type manager struct{}

func (manager) UpdateCronJobStatus() ctrlkit.ReconcileAction { return ctrlkit.Nop() }
func (manager) Fallible() (ctrlkit.Action, error)            { return ctrlkit.Nop(), nil }

// custom is an action of its own type.
type custom struct{}

func (*custom) Description() string                      { return "custom" }
func (*custom) Run(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }

func newCustom() *custom { return &custom{} }

func reconcile(ctx context.Context, mgr manager) (ctrl.Result, error) {
	defer mgr.UpdateCronJobStatus() // want `defer mgr.UpdateCronJobStatus\(...\) makes an action and never runs it: run it after the others with ctrlkit.Finally\(workflow, mgr.UpdateCronJobStatus\(...\)\)`

	go mgr.UpdateCronJobStatus()      // want `go mgr.UpdateCronJobStatus\(...\) makes an action and never runs it`
	mgr.UpdateCronJobStatus()         // want `mgr.UpdateCronJobStatus\(...\) makes an action that is never run`
	_ = mgr.UpdateCronJobStatus()     // want `makes an action that is never run`
	_, err := mgr.Fallible()          // want `mgr.Fallible\(...\) makes an action that is never run`
	mgr.Fallible()                    // want `makes an action that is never run`
	newCustom()                       // want `newCustom\(...\) makes an action that is never run`
	(ctrlkit.Sequential(newCustom())) // want `ctrlkit.Sequential\(...\) makes an action that is never run`
	var _ = newCustom()               // want `makes an action that is never run`
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}

	ctrlkit.RequeueAfter(time.Second)      // want `ctrlkit.RequeueAfter returns an outcome and does nothing by itself: return it`
	defer ctrlkit.Exit()                   // want `ctrlkit.Exit returns an outcome and does nothing by itself`
	_ = ctrlkit.Wait("x")                  // want `ctrlkit.Wait returns an outcome`
	defer newCustom().Run(ctx)             // want `newCustom\(\).Run returns an outcome that is thrown away, errors included`
	mgr.UpdateCronJobStatus().Run(ctx)     // want `Run returns an outcome that is thrown away`
	ctrlkit.IgnoreExit(ctrl.Result{}, nil) // want `ctrlkit.IgnoreExit returns an outcome`
	return ctrlkit.NoRequeue()
}

func branches(ctx context.Context, mgr manager, n int) (ctrl.Result, error) {
	if n == 1 {
		ctrlkit.Exit() // want `ctrlkit.Exit returns an outcome`
	}
	if n == 2 {
		mgr.UpdateCronJobStatus() // want `makes an action that is never run`
	}
	if n == 3 {
		mgr.UpdateCronJobStatus().Run(ctx) // want `Run returns an outcome that is thrown away`
	}
	if n == 4 {
		ctx := "not a context"
		_ = ctx
		mgr.UpdateCronJobStatus() // want `makes an action that is never run`
	}
	/* want `ctrlkit.Exit returns an outcome` */ ctrlkit.Exit() //nolint:discarded
	/* want `ctrlkit.Exit returns an outcome` */ ctrlkit.Exit() //nolint:errcheck // of another tool
	func() {
		ctrlkit.Exit() // want `ctrlkit.Exit returns an outcome`
	}()
	return ctrlkit.NoRequeue()
}

type reconciler struct{}

// reconcileParts requeues.
func (reconciler) reconcileParts(ctx context.Context, ready bool) (ctrl.Result, error) {
	if !ready {
		return ctrl.Result{RequeueAfter: time.Minute}, nil
	}
	return ctrl.Result{}, ctx.Err()
}

func (r reconciler) waitForParts(ctx context.Context) (ctrl.Result, error) {
	return r.reconcileParts(ctx, false)
}

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	_, err := r.reconcileParts(ctx, false) // want `r.reconcileParts returns when to reconcile again \(wrong.go:\d+\), and the result is thrown away: return it with the error`
	if err != nil {
		return ctrl.Result{}, err
	}
	_, err = r.waitForParts(ctx) // want `r.waitForParts returns when to reconcile again`
	return ctrl.Result{}, err
}
