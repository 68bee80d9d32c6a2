// Package ctrlkit stands for the real one, with what the packages under test use. A test of the command runs the analyser over code that
// uses the real one.
package ctrlkit

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

type Action interface {
	Description() string
	Run(ctx context.Context) (ctrl.Result, error)
}

type ReconcileAction = Action

func Nop() Action                        { return nil }
func Sequential(...Action) Action        { return nil }
func Finally(action, tail Action) Action { return nil }

func NoRequeue() (ctrl.Result, error)                               { return ctrl.Result{}, nil }
func Exit() (ctrl.Result, error)                                    { return ctrl.Result{}, nil }
func RequeueIfError(err error) (ctrl.Result, error)                 { return ctrl.Result{}, err }
func RequeueAfter(time.Duration) (ctrl.Result, error)               { return ctrl.Result{}, nil }
func ContinueAndRequeueAfter(time.Duration) (ctrl.Result, error)    { return ctrl.Result{}, nil }
func WaitFor(string) (ctrl.Result, error)                           { return ctrl.Result{}, nil }
func IgnoreExit(result ctrl.Result, err error) (ctrl.Result, error) { return result, err }
