// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Workflow returns a Do or a Cleanup that runs a workflow of package ctrlkit, built anew for each
// reconcile. Its actions are recorded in the journal. A generated manager plugs in like this:
//
//	step.Step[*v1.CronJob]{Name: "Run", Do: step.Workflow(func(req *step.Request[*v1.CronJob]) ctrlkit.Action {
//		state := manager.NewCronJobControllerManagerState(req.Client, req.Object)
//		mgr := manager.NewCronJobControllerManager(state, newImpl(req), req.Logger)
//		return ctrlkit.Join(mgr.CleanUpOldJobs(), mgr.RunNextScheduledJob())
//	})}
func Workflow[T client.Object](build func(req *Request[T]) ctrlkit.Action) func(ctx context.Context, req *Request[T]) error {
	return func(ctx context.Context, req *Request[T]) error { return runWorkflow(ctx, req, build(req)) }
}

func runWorkflow[T client.Object](ctx context.Context, req *Request[T], action ctrlkit.Action) error {
	if req.journal != nil {
		ctx = ctrlkit.ContextWithHook(ctx, &actionEvents{run: req.journal, step: track.StepFrom(ctx), table: req.table})
	}
	if workflow, ok := action.(ctrlkit.Describer); ok && req.journal != nil {
		req.journal.Note(ctx, journal.WorkflowBegan{Step: track.StepFrom(ctx), Workflow: workflow})
	}
	return ctrlkit.AsError(action.Run(ctx))
}

// outcomeOf returns an outcome as the journal has it.
func outcomeOf(table *failure.Table, result ctrl.Result, err error) journal.Outcome {
	var o journal.Outcome
	for _, w := range ctrlkit.Waits(err) {
		o.Waits = append(o.Waits, journal.Wait{For: w.For, Every: w.Every})
	}
	result, o.Err = ctrlkit.IgnoreExit(result, err)
	o.RequeueAfter = result.RequeueAfter
	if o.Err != nil {
		classified := table.Classify(o.Err)
		o.Class, o.Remedy = string(classified.Class), classified.Remedy
	}
	return o
}

// actionEvents records the actions of a workflow in the journal.
type actionEvents struct {
	run   *journal.Run
	step  string
	table *failure.Table
}

var _ ctrlkit.BlockHook = (*actionEvents)(nil)

type actionBegan struct{}

func (a *actionEvents) BeforeAction(ctx context.Context, action string) context.Context {
	a.run.Note(ctx, journal.ActionBegan{Step: a.step, Action: action})
	return context.WithValue(ctx, actionBegan{}, time.Now())
}

func (a *actionEvents) AfterAction(ctx context.Context, action string, result ctrl.Result, err error) {
	began, _ := ctx.Value(actionBegan{}).(time.Time)
	a.run.Note(ctx, journal.ActionEnded{Step: a.step, Action: action, Outcome: outcomeOf(a.table, result, err), Duration: time.Since(began)})
}

func (a *actionEvents) ActionBlocked(ctx context.Context, action string, by []string) {
	a.run.Note(ctx, journal.ActionBlocked{Step: a.step, Action: action, By: by})
}
