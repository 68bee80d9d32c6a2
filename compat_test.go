// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// Code that an earlier generator wrote has these names in it.
var _ func() ctrlkit.ReconcileAction = func() ctrlkit.ReconcileAction {
	return ctrlkit.WrapAction("A", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() })
}

type lifeCycle struct{ *journal }

func (l lifeCycle) BeforeActionRun(action string, _ context.Context, logger logr.Logger) {
	l.note("before " + action)
	logger.Info("")
}
func (l lifeCycle) AfterActionRun(action string, _ context.Context, _ logr.Logger) {
	l.note("after " + action)
}

func TestLifeCycleHook(t *testing.T) {
	var j journal
	logger := funcr.New(func(_, args string) { j.note(args) }, funcr.Options{})
	ctx := ctrlkit.ContextWithHook(background(), ctrlkit.LifeCycleHook(lifeCycle{&j}, logger))
	_, _ = j.ok("A").Run(ctx)
	j.want(t, "before A", `"level"=0 "msg"="" "action"="A"`, "A", "after A")
}
