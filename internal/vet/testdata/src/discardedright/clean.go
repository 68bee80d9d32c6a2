// Package discardedright does nothing wrong.
package discardedright

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

type custom struct{}

func (custom) Description() string { return "custom" }
func (custom) Run(context.Context) (ctrl.Result, error) {
	return ctrl.Result{}, ctrlkit.RequeueWithin(time.Minute)
}

// almost has methods of the same names and is something else.
type almost struct{}

func (almost) Description() string           { return "almost" }
func (almost) Run(ctx context.Context) error { return ctx.Err() }

func newCustom() ctrlkit.Action { return custom{} }
func newAlmost() almost         { return almost{} }
func log(any)                   {}
func outcome() (ctrl.Result, error) {
	return ctrlkit.NoRequeue()
}

var (
	_ ctrlkit.Action = custom{}
	_ ctrlkit.Action = newCustom()
	_                = ctrlkit.Action(nil)
)

func reconcile(ctx context.Context) (ctrl.Result, error) {
	newAlmost()
	defer newAlmost().Run(ctx)
	log(newCustom())
	_ = ctrlkit.Action(custom{})
	outcome()
	newCustom() //nolint:discarded // on purpose
	newCustom() //nolint:errcheck,discarded // on purpose
	ctrlkit.Sequential(
		newCustom(),
	) //nolint:discarded // on purpose
	_, _ = newCustom().Run(ctx)
	result, _ := ctrlkit.RequeueAfter(time.Second)
	err := ctrlkit.ErrExit
	kept := newCustom()
	if result.RequeueAfter == 0 {
		return ctrlkit.RequeueIfError(err)
	}
	return ctrlkit.IgnoreExit(ctrlkit.Finally(kept, newCustom()).Run(ctx))
}

// parts returns a time only beside a failure, which the caller keeps.
func parts(ctx context.Context) (ctrl.Result, error) {
	if err := ctx.Err(); err != nil {
		return ctrl.Result{RequeueAfter: time.Second}, err
	}
	return ctrl.Result{}, nil
}

func timed(context.Context) (ctrl.Result, error) {
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

func keepsTheError(ctx context.Context) (ctrl.Result, error) {
	_, err := parts(ctx)
	return ctrl.Result{}, err
}

// hasItsOwnTime reconciles again sooner or later.
func hasItsOwnTime(ctx context.Context) (ctrl.Result, error) {
	_, err := timed(ctx)
	return ctrl.Result{RequeueAfter: time.Second}, err
}

// post can't return a result.
func post(ctx context.Context) error {
	_, err := timed(ctx)
	return err
}

func joins(ctx context.Context) (ctrl.Result, error) {
	result, err := timed(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}
