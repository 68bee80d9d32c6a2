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
	"github.com/ctrlkit/ctrlkit/internal/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Workflow returns a step that runs a workflow of package ctrlkit, built anew for each reconcile. A
// generated manager plugs in like this:
//
//	step.Workflow("Run", func(req *step.Request[*v1.CronJob]) ctrlkit.Action {
//		state := manager.NewCronJobControllerManagerState(req.Client, req.Object)
//		mgr := manager.NewCronJobControllerManager(state, newImpl(req), req.Logger)
//		return ctrlkit.Join(mgr.CleanUpOldJobs(), mgr.RunNextScheduledJob())
//	})
func Workflow[T client.Object](name string, build func(req *Request[T]) ctrlkit.Action) Step[T] {
	return &workflow[T]{name: name, do: build}
}

// WorkflowWithCleanup is [Workflow] for a step that has something to clean up.
func WorkflowWithCleanup[T client.Object](name string, do, cleanup func(req *Request[T]) ctrlkit.Action) Cleaner[T] {
	return &cleanedWorkflow[T]{workflow[T]{name, do}, cleanup}
}

type workflow[T client.Object] struct {
	name string
	do   func(req *Request[T]) ctrlkit.Action
}

func (w *workflow[T]) Name() string { return w.name }

func (w *workflow[T]) Do(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
	return RunWorkflow(ctx, req, w.do)
}

type cleanedWorkflow[T client.Object] struct {
	workflow[T]
	cleanup func(req *Request[T]) ctrlkit.Action
}

func (w *cleanedWorkflow[T]) Cleanup(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
	return RunWorkflow(ctx, req, w.cleanup)
}

// RunWorkflow builds a workflow and runs it, for a step of a type of your own. Its actions are
// recorded in the journal.
func RunWorkflow[T client.Object](ctx context.Context, req *Request[T], build func(req *Request[T]) ctrlkit.Action) (ctrl.Result, error) {
	if req.journal != nil {
		ctx = ctrlkit.ContextWithHook(ctx, &actionEvents{run: req.journal, step: track.StepFrom(ctx), table: req.table})
	}
	action := build(req)
	if workflow, ok := action.(ctrlkit.Describer); ok && req.journal != nil {
		req.journal.Note(ctx, journal.WorkflowBegan{Step: track.StepFrom(ctx), Workflow: workflow})
	}
	return action.Run(ctx)
}

// outcomeOf returns an outcome as the journal has it.
func outcomeOf(table *failure.Table, result ctrl.Result, err error) journal.Outcome {
	o := journal.Outcome{RequeueAfter: result.RequeueAfter}
	if err == nil {
		return o
	}
	for _, w := range ctrlkit.Waits(err) {
		o.Waits = append(o.Waits, journal.Wait{For: w.For, Every: w.Every})
	}
	if _, o.Err = ctrlkit.IgnoreExit(result, err); o.Err != nil {
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
