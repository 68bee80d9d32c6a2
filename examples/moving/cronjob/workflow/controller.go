// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles CronJobs with an engine of one step, which runs a workflow.
package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/moving/cronjob/runs"
	"github.com/ctrlkit/ctrlkit/step"
)

// CronJobReconciler starts a Job at each time of the schedule of a CronJob.
type CronJobReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	runs.Clock

	once   sync.Once
	engine *step.Engine[*v1.CronJob]
	err    error
}

// Reconcile is for tests that call it without a manager.
func (r *CronJobReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	engine, err := r.newEngine(nil, nil)
	if err != nil {
		return ctrl.Result{}, err
	}
	return engine.Reconcile(ctx, req)
}

// newEngine returns the engine, which the first call creates.
func (r *CronJobReconciler) newEngine(live client.Reader, recorder events.EventRecorder) (*step.Engine[*v1.CronJob], error) {
	r.once.Do(func() {
		r.engine, r.err = step.New(step.Options[*v1.CronJob]{Name: "cronjob", Client: r.Client, APIReader: live, Recorder: recorder},
			step.Step[*v1.CronJob]{Name: "RunJobs", Do: step.Workflow(r.runJobs), Conditions: runs.Conditions()})
	})
	return r.engine, r.err
}

// runJobs starts the runs of a CronJob, and deletes old Jobs.
func (r *CronJobReconciler) runJobs(req *step.Request[*v1.CronJob]) ctrlkit.Action {
	run := &run{Request: req, now: r.Now()}
	return ctrlkit.Sequential(
		ctrlkit.NewAction("ReadJobs", run.readJobs),
		ctrlkit.Join(
			ctrlkit.NewAction("DeleteOld", run.deleteOld),
			ctrlkit.If(!req.Object.Spec.Suspended(), ctrlkit.NewAction("StartRun", run.startRun)),
		),
	)
}

// A run is one reconcile of a CronJob. Its methods are the actions.
type run struct {
	*step.Request[*v1.CronJob]
	now  time.Time
	jobs runs.Jobs // since ReadJobs
}

// readJobs reads the Jobs, and says in the status how they are.
func (r *run) readJobs(ctx context.Context) (ctrl.Result, error) {
	list := &batchv1.JobList{}
	if err := r.Client.List(ctx, list, client.InNamespace(r.Object.Namespace), client.MatchingFields{runs.OwnerField: r.Object.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the Jobs: %w", err)
	}
	r.jobs = runs.Of(list)
	status := &r.Object.Status
	status.Active = runs.References(r.jobs.Active)
	if last := status.LastScheduleTime; !r.jobs.Last.IsZero() && (last == nil || r.jobs.Last.After(last.Time)) {
		status.LastScheduleTime = &metav1.Time{Time: r.jobs.Last} // it stays when the Job is deleted
	}
	runs.SetConditions(r.Request, r.jobs)
	return ctrlkit.NoRequeue()
}

// startRun creates the Job of the run that is due, if there is one.
func (r *run) startRun(ctx context.Context) (ctrl.Result, error) {
	due, next, err := runs.Times(r.Object, r.now)
	if err != nil {
		r.Conditions.MarkUnhealthy(runs.Degraded, condition.SeverityError, "InvalidSchedule", err.Error())
		return ctrlkit.NoRequeue() // a change of the schedule triggers the next reconcile
	}
	if !due.IsZero() && (r.Object.Spec.ConcurrencyPolicy != v1.ForbidConcurrent || len(r.jobs.Active) == 0) {
		if err := r.start(ctx, due); err != nil {
			for _, c := range []string{runs.Available, runs.Degraded} {
				r.Conditions.MarkUnhealthy(c, condition.SeverityWarning, "JobCreationFailed", err.Error())
			}
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, ctrlkit.RequeueWithin(next.Sub(r.now))
}

func (r *run) start(ctx context.Context, due time.Time) error {
	if r.Object.Spec.ConcurrencyPolicy == v1.ReplaceConcurrent {
		if err := runs.Delete(ctx, r.Client, r.jobs.Active); err != nil {
			return err
		}
	}
	if err := apply.Ensure(ctx, r.Request, runs.New(r.Object, due)); err != nil {
		return err
	}
	r.Object.Status.LastScheduleTime = &metav1.Time{Time: due}
	return nil
}

// deleteOld deletes the Jobs that are too many.
func (r *run) deleteOld(ctx context.Context) (ctrl.Result, error) {
	old := slices.Concat(
		runs.TooMany(r.jobs.Failed, r.Object.Spec.FailedJobsHistoryLimit),
		runs.TooMany(r.jobs.Complete, r.Object.Spec.SuccessfulJobsHistoryLimit),
	)
	if len(old) == 0 {
		return ctrlkit.NoRequeue()
	}
	if err := r.Save(ctx); err != nil { // without its Job, only the status knows of a run
		return ctrl.Result{}, err
	}
	return ctrlkit.RequeueIfError(runs.Delete(ctx, r.Client, old))
}

// SetupWithManager adds the controller to a manager.
func (r *CronJobReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Clock == nil {
		r.Clock = runs.RealClock{}
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, runs.OwnerField, runs.OwnerOf); err != nil {
		return err
	}
	engine, err := r.newEngine(mgr.GetAPIReader(), mgr.GetEventRecorder("cronjob"))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).Named("cronjob").For(&v1.CronJob{}).Owns(&batchv1.Job{}))
}
