// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/step"
)

// A watchingStep is a step of Projects that notes its calls, and declares a watch.
type watchingStep struct {
	step.Step[*Project]
	watch step.Watch
}

var _ step.Watcher[*Project] = watchingStep{}

// Watches implements [step.Watcher].
func (s watchingStep) Watches() []step.Watch { return []step.Watch{s.watch} }

// watching returns a step that notes its calls as one:object.
func watching(w *world, watch step.Watch) step.Step[*Project] {
	return watchingStep{step.Func("watching", func(_ context.Context, req *step.Request[*Project]) (ctrl.Result, error) {
		w.call("one:" + req.Object.Name)
		return ctrl.Result{}, nil
	}), watch}
}
