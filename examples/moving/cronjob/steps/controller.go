// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles CronJobs with an engine of three steps.
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
			ReadJobs, step.Step[*v1.CronJob]{Name: "StartRun", Do: r.startRun}, DeleteOld)
	})
	return r.engine, r.err
}

// Jobs is what ReadJobs has found.
var Jobs = step.NewKey[runs.Jobs]("jobs")

// ReadJobs reads the Jobs of a CronJob, and says in the status how they are.
var ReadJobs = step.Step[*v1.CronJob]{Name: "ReadJobs", Do: readJobs, Conditions: runs.Conditions()}

func readJobs(ctx context.Context, req *step.Request[*v1.CronJob]) error {
	list := &batchv1.JobList{}
	if err := req.Client.List(ctx, list, client.InNamespace(req.Object.Namespace), client.MatchingFields{runs.OwnerField: req.Object.Name}); err != nil {
		return fmt.Errorf("listing the Jobs: %w", err)
	}
	found := runs.Of(list)
	step.Put(req, Jobs, found)
	status := &req.Object.Status
	status.Active = runs.References(found.Active)
	if last := status.LastScheduleTime; !found.Last.IsZero() && (last == nil || found.Last.After(last.Time)) {
		status.LastScheduleTime = &metav1.Time{Time: found.Last} // it stays when the Job is deleted
	}
	runs.SetConditions(req, found)
	return nil
}

// startRun creates the Job of the run that is due, if there is one.
func (r *CronJobReconciler) startRun(ctx context.Context, req *step.Request[*v1.CronJob]) error {
	cronJob := req.Object
	if cronJob.Spec.Suspended() {
		return nil
	}
	now := r.Now()
	due, next, err := runs.Times(cronJob, now)
	if err != nil {
		req.Conditions.MarkUnhealthy(runs.Degraded, condition.SeverityError, "InvalidSchedule", err.Error())
		return nil // a change of the schedule triggers the next reconcile
	}
	found, _ := step.Lookup(req, Jobs)
	if !due.IsZero() && (cronJob.Spec.ConcurrencyPolicy != v1.ForbidConcurrent || len(found.Active) == 0) {
		if err := start(ctx, req, due, found.Active, r.Scheme); err != nil {
			for _, c := range []string{runs.Available, runs.Degraded} {
				req.Conditions.MarkUnhealthy(c, condition.SeverityWarning, "JobCreationFailed", err.Error())
			}
			return err
		}
	}
	return ctrlkit.RequeueWithin(next.Sub(now))
}

func start(ctx context.Context, req *step.Request[*v1.CronJob], due time.Time, active []*batchv1.Job, scheme *runtime.Scheme) error {
	if req.Object.Spec.ConcurrencyPolicy == v1.ReplaceConcurrent {
		if err := runs.Delete(ctx, req.Client, active); err != nil {
			return err
		}
	}
	job := runs.New(req.Object, due)
	if err := ctrl.SetControllerReference(req.Object, job, scheme); err != nil {
		return err
	}
	if err := req.Client.Create(ctx, job); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating Job %q: %w", job.Name, err)
	}
	req.Object.Status.LastScheduleTime = &metav1.Time{Time: due}
	return nil
}

// DeleteOld deletes the Jobs that are too many. It is the last step, so that a Job that can't be
// deleted keeps no run from being started.
var DeleteOld = step.Step[*v1.CronJob]{Name: "DeleteOld", Do: deleteOld}

func deleteOld(ctx context.Context, req *step.Request[*v1.CronJob]) error {
	found, _ := step.Lookup(req, Jobs)
	old := slices.Concat(
		runs.TooMany(found.Failed, req.Object.Spec.FailedJobsHistoryLimit),
		runs.TooMany(found.Complete, req.Object.Spec.SuccessfulJobsHistoryLimit),
	)
	if len(old) == 0 {
		return nil
	}
	if err := req.Save(ctx); err != nil { // without its Job, only the status knows of a run
		return err
	}
	return runs.Delete(ctx, req.Client, old)
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
