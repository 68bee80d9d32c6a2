// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// RunNextScheduledJob starts the run that is due, if there is one, and requeues at the time of the
// next one.
//
// It reads the status that ListActiveJobsAndUpdateStatus has set.
func (i *impl) RunNextScheduledJob(ctx context.Context, logger logr.Logger) (ctrl.Result, error) {
	runs, err := i.runs()
	if err != nil {
		// The user must change the spec, and the change triggers a reconcile: a retry would not
		// help.
		i.setNotScheduled(err)
		return ctrlkit.NoRequeue()
	}
	if runs.due.IsZero() || i.tooLate(runs.due) {
		i.setScheduled()
		return ctrlkit.RequeueAfter(runs.next.Sub(i.now))
	}
	if result, err := i.permit(ctx); err != nil {
		return result, err
	}
	if err := i.start(ctx, logger, runs.due); err != nil {
		i.setNotScheduled(err)
		return ctrlkit.RequeueIfError(err)
	}
	i.setScheduled()
	i.setMissedBefore(runs)
	return ctrlkit.RequeueAfter(runs.next.Sub(i.now))
}

// runs returns the runs of the schedule now. Before the first run, times count from the creation of
// the CronJob.
func (i *impl) runs() (runs, error) {
	schedule, err := parseSchedule(&i.cronJob.Spec)
	if err != nil {
		return runs{}, err
	}
	last := i.cronJob.CreationTimestamp
	if i.cronJob.Status.LastScheduleTime != nil {
		last = *i.cronJob.Status.LastScheduleTime
	}
	return schedule.at(last.Time, i.now)
}

// tooLate reports whether the starting deadline of a run has passed. If so, it records that in the
// status.
func (i *impl) tooLate(due time.Time) bool {
	deadline := i.cronJob.Spec.StartingDeadlineSeconds
	if deadline == nil || i.now.Sub(due) <= time.Duration(*deadline)*time.Second {
		return false
	}
	i.setMissed(v1.ReasonDeadlinePassed, fmt.Sprintf(
		"the run of %s could not start within its deadline of %d seconds", due.UTC().Format(time.RFC3339), *deadline))
	return true
}

// permit returns an error, which is a wait, if the run that is due must not start now.
func (i *impl) permit(ctx context.Context) (ctrl.Result, error) {
	if active := i.cronJob.Status.Active; len(active) > 0 && i.cronJob.Spec.ConcurrencyPolicy == v1.ForbidConcurrent {
		// This is as specified, so that the CronJob stays Ready. The end of a Job triggers a
		// reconcile.
		i.setWaiting(active)
		return ctrlkit.Exit()
	}
	// The start of a Job cannot be undone, and the cache may be stale: the user may have suspended
	// the CronJob, or the run may be in the status and its Job deleted. One live read per run
	// excludes that.
	var newest v1.CronJob
	err := i.live.Get(ctx, client.ObjectKeyFromObject(i.cronJob), &newest)
	switch {
	case apierrors.IsNotFound(err):
		return ctrlkit.Exit()
	case err != nil:
		return ctrlkit.RequeueIfError(fmt.Errorf("reading the latest version of the CronJob: %w", err))
	case newest.ResourceVersion != i.cronJob.ResourceVersion:
		return ctrl.Result{}, ctrlkit.Wait("the latest version of the CronJob to arrive in the cache")
	}
	return ctrlkit.NoRequeue()
}

// start creates the Job of a run. If the concurrency policy is Replace, it first deletes the active
// ones.
func (i *impl) start(ctx context.Context, logger logr.Logger, due time.Time) error {
	job, err := newJob(i.cronJob, due, i.client.Scheme())
	if err != nil {
		return err
	}
	if i.cronJob.Spec.ConcurrencyPolicy == v1.ReplaceConcurrent {
		if err := i.replaceActive(ctx, logger); err != nil {
			return err
		}
	}
	err = i.client.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		return i.acceptExisting(ctx, job, due)
	}
	if err != nil {
		return fmt.Errorf("creating Job %q: %w", job.Name, err)
	}
	logger.Info("started a run", "job", job.Name, "scheduledAt", due)
	i.recorder.Eventf(i.cronJob, job, corev1.EventTypeNormal, "Started", "Start", "Started Job %s", job.Name)
	i.noteRun(job, due)
	return nil
}

// replaceActive deletes the active Jobs.
func (i *impl) replaceActive(ctx context.Context, logger logr.Logger) error {
	var errs []error
	for _, ref := range i.cronJob.Status.Active {
		logger.Info("replacing an active job", "job", ref.Name)
		errs = append(errs, i.deleteJob(ctx, ref))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	i.cronJob.Status.Active = nil
	return nil
}

// acceptExisting accepts an existing Job with the name of the run, if the CronJob is its owner: an
// earlier reconcile created it and did not record it.
func (i *impl) acceptExisting(ctx context.Context, wanted *batchv1.Job, due time.Time) error {
	var existing batchv1.Job
	if err := i.live.Get(ctx, client.ObjectKeyFromObject(wanted), &existing); err != nil {
		return fmt.Errorf("checking the owner of Job %q: %w", wanted.Name, err)
	}
	if !metav1.IsControlledBy(&existing, i.cronJob) {
		return &problem{v1.ReasonJobNameTaken, fmt.Errorf(
			"the run needs the name of Job %q, which belongs to %s: delete that Job or create a CronJob with another name",
			existing.Name, controllerOf(&existing))}
	}
	i.noteRun(&existing, due)
	return nil
}

func controllerOf(job *batchv1.Job) string {
	owner := metav1.GetControllerOf(job)
	if owner == nil {
		return "no controller"
	}
	return fmt.Sprintf("%s %q with UID %s", owner.Kind, owner.Name, owner.UID)
}

func namesOf(jobs []corev1.ObjectReference) string {
	names := make([]string, len(jobs))
	for k, job := range jobs {
		names[k] = job.Name
	}
	return "Job " + strings.Join(names, ", ")
}
