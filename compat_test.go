// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
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

// actionHook is a hook of the original library.
type actionHook struct {
	*journal
	name string
}

func (h actionHook) PreRun(_ context.Context, logger logr.Logger, action string, states map[string]runtime.Object) {
	h.note(fmt.Sprintf("%s before %s %d", h.name, action, len(states)))
	logger.Info("")
}
func (h actionHook) PostRun(_ context.Context, _ logr.Logger, action string, result ctrl.Result, err error) {
	h.note(fmt.Sprintf("%s after %s %v %v", h.name, action, result.RequeueAfter, err))
}

func TestActionHook(t *testing.T) {
	var j journal
	logger := funcr.New(func(_, args string) { j.note(args) }, funcr.Options{})
	hooks := ctrlkit.ChainActionHooks(actionHook{&j, "outer"})
	hooks.Add(actionHook{&j, "inner"})
	logged := `"level"=0 "msg"="" "action"="A"`
	action := ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) {
		j.note("A")
		return ctrlkit.RequeueAfter(time.Second)
	}, ctrlkit.WithLogger(logger), ctrlkit.WithActionHook(hooks), ctrlkit.WithActionHook(nil))
	_, _ = action.Run(background())
	j.want(t, "outer before A 0", logged, "inner before A 0", logged, "A", "inner after A 1s <nil>", "outer after A 1s <nil>")
}

func TestOutcomesOfTheOriginalLibrary(t *testing.T) {
	failure := errors.New("failure")
	for name, test := range map[string]struct {
		end     func() (ctrl.Result, error)
		want    string
		needsIt bool
	}{
		"exit":    {func() (ctrl.Result, error) { return ctrlkit.ExitIf(true) }, "exit", true},
		"no exit": {func() (ctrl.Result, error) { return ctrlkit.ExitIf(false) }, "<nil>", false},
		"wrapped": {func() (ctrl.Result, error) { return ctrlkit.RequeueIfErrorAndWrap("reading", failure) }, "reading: failure", true},
		"success": {func() (ctrl.Result, error) { return ctrlkit.RequeueIfErrorAndWrap("reading", nil) }, "<nil>", false},
		"backoff": {ctrlkit.RequeueWithBackoff, "<nil>", true},
		"time":    {func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(time.Hour) }, "<nil>", true},
	} {
		result, err := test.end()
		if got := ctrlkit.NeedsRequeue(result, err); got != test.needsIt {
			t.Errorf("%s: NeedsRequeue = %v", name, got)
		}
		if got := fmt.Sprint(err); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if _, err := ctrlkit.RequeueIfErrorAndWrap("reading", failure); !errors.Is(err, failure) {
		t.Errorf("%v does not wrap the error", err)
	}
}
