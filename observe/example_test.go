// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/observe"
	"github.com/ctrlkit/ctrlkit/step"
)

// One observer for all engines of a manager.
func ExampleManager() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	observer, err := observe.Manager(mgr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	engine, err := step.New(step.Options[*corev1.Secret]{
		Name: "secret", Client: mgr.GetClient(), Observers: []journal.Observer{observer},
	}, step.Func("Check", func(context.Context, *step.Request[*corev1.Secret]) (ctrl.Result, error) {
		return ctrl.Result{}, nil
	}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_ = engine // goes into a controller
}
