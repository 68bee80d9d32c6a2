// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles CronJobs by hand.
package controller

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/moving/cronjob/runs"
)

// CronJobReconciler starts a Job at each time of the schedule of a CronJob.
type CronJobReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	runs.Clock
}

// Reconcile reads a CronJob.
func (r *CronJobReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cronJob := &v1.CronJob{}
	if err := r.Get(ctx, req.NamespacedName, cronJob); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return r.Do(ctx, cronJob)
}

// Do starts the run that is due, and deletes old Jobs.
func (r *CronJobReconciler) Do(ctx context.Context, cronJob *v1.CronJob) (ctrl.Result, error) {
	logger := log.FromContext(ctx)

	if len(cronJob.Status.Conditions) == 0 {
		setCondition(cronJob, runs.Progressing, metav1.ConditionUnknown, "Reconciling", "the Jobs were not looked at yet")
		if err := r.Status().Update(ctx, cronJob); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Get(ctx, client.ObjectKeyFromObject(cronJob), cronJob); err != nil {
			return ctrl.Result{}, err
		}
	}

	list := &batchv1.JobList{}
	if err := r.List(ctx, list, client.InNamespace(cronJob.Namespace), client.MatchingFields{runs.OwnerField: cronJob.Name}); err != nil {
		logger.Error(err, "Listing the Jobs has failed")
		return ctrl.Result{}, errors.Join(err, r.report(ctx, cronJob, runs.Degraded, "ReconciliationError", err.Error()))
	}
	jobs := runs.Of(list)
	if err := r.updateStatus(ctx, cronJob, jobs); err != nil {
		logger.Error(err, "Updating the status has failed")
		return ctrl.Result{}, err
	}

	r.deleteOld(ctx, runs.TooMany(jobs.Failed, cronJob.Spec.FailedJobsHistoryLimit))
	r.deleteOld(ctx, runs.TooMany(jobs.Complete, cronJob.Spec.SuccessfulJobsHistoryLimit))

	if cronJob.Spec.Suspended() {
		return ctrl.Result{}, nil
	}
	return r.startRun(ctx, cronJob, jobs.Active)
}

// updateStatus computes the status anew from the Jobs.
func (r *CronJobReconciler) updateStatus(ctx context.Context, cronJob *v1.CronJob, jobs runs.Jobs) error {
	cronJob.Status.LastScheduleTime = nil
	if !jobs.Last.IsZero() {
		cronJob.Status.LastScheduleTime = &metav1.Time{Time: jobs.Last}
	}
	cronJob.Status.Active = nil
	for _, job := range jobs.Active {
		ref, err := reference.GetReference(r.Scheme, job)
		if err != nil {
			return err
		}
		cronJob.Status.Active = append(cronJob.Status.Active, *ref)
	}

	switch active, failed := len(jobs.Active), len(jobs.Failed); {
	case cronJob.Spec.Suspended():
		setCondition(cronJob, runs.Available, metav1.ConditionFalse, "Suspended", "no Jobs are started")
	case failed > 0:
		setCondition(cronJob, runs.Degraded, metav1.ConditionTrue, "JobsFailed", fmt.Sprintf("%d Jobs have failed", failed))
		setCondition(cronJob, runs.Available, metav1.ConditionFalse, "JobsFailed", fmt.Sprintf("%d Jobs have failed", failed))
	case active > 0:
		setCondition(cronJob, runs.Progressing, metav1.ConditionTrue, "JobsActive", fmt.Sprintf("%d Jobs are active", active))
		setCondition(cronJob, runs.Available, metav1.ConditionTrue, "JobsActive", fmt.Sprintf("%d Jobs are active", active))
	default:
		setCondition(cronJob, runs.Progressing, metav1.ConditionFalse, "NoJobsActive", "no Jobs are active")
		setCondition(cronJob, runs.Available, metav1.ConditionTrue, "AllJobsCompleted", "all Jobs are complete")
	}
	return r.Status().Update(ctx, cronJob)
}

// deleteOld deletes Jobs. The next reconcile tries again what fails.
func (r *CronJobReconciler) deleteOld(ctx context.Context, jobs []*batchv1.Job) {
	for _, job := range jobs {
		if err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).Error(err, "Deleting an old Job has failed", "job", job.Name)
		}
	}
}

// startRun creates the Job of the run that is due, if there is one.
func (r *CronJobReconciler) startRun(ctx context.Context, cronJob *v1.CronJob, active []*batchv1.Job) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	now := r.Now()
	due, next, err := runs.Times(cronJob, now)
	if err != nil {
		// A change of the schedule triggers the next reconcile.
		logger.Error(err, "There is no next run")
		return ctrl.Result{}, r.report(ctx, cronJob, runs.Degraded, "InvalidSchedule", err.Error())
	}
	result := ctrl.Result{RequeueAfter: next.Sub(now)}
	if due.IsZero() || cronJob.Spec.ConcurrencyPolicy == v1.ForbidConcurrent && len(active) > 0 {
		return result, nil
	}

	if cronJob.Spec.ConcurrencyPolicy == v1.ReplaceConcurrent {
		for _, job := range active {
			if err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
				logger.Error(err, "Deleting an active Job has failed", "job", job.Name)
				return ctrl.Result{}, err
			}
		}
	}

	job := runs.New(cronJob, due)
	if err := ctrl.SetControllerReference(cronJob, job, r.Scheme); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, job); err != nil {
		logger.Error(err, "Creating a Job has failed", "job", job.Name)
		return ctrl.Result{}, errors.Join(err, r.report(ctx, cronJob, runs.Degraded, "JobCreationFailed", err.Error()))
	}
	return result, r.report(ctx, cronJob, runs.Progressing, "JobCreated", "Job "+job.Name+" was created")
}

// report sets a condition to True in the newest version of a CronJob.
func (r *CronJobReconciler) report(ctx context.Context, cronJob *v1.CronJob, condition, reason, message string) error {
	if err := r.Get(ctx, client.ObjectKeyFromObject(cronJob), cronJob); err != nil {
		return err
	}
	setCondition(cronJob, condition, metav1.ConditionTrue, reason, message)
	if err := r.Status().Update(ctx, cronJob); err != nil {
		log.FromContext(ctx).Error(err, "Updating the status has failed")
	}
	return nil
}

func setCondition(cronJob *v1.CronJob, condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&cronJob.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message})
}

// SetupWithManager adds the controller to a manager.
func (r *CronJobReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Clock == nil {
		r.Clock = runs.RealClock{}
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, runs.OwnerField, runs.OwnerOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("cronjob").For(&v1.CronJob{}).Owns(&batchv1.Job{}).Complete(r)
}
