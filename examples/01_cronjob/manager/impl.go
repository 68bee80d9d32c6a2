// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// impl implements the actions for one reconcile of one CronJob.
//
// The actions change the status of the request's CronJob, and the step engine writes it, if it
// differs. The Job is created before the status is written: if the operator crashes in between, the
// next reconcile finds the Job by its name.
type impl struct {
	client   client.Client
	live     client.Reader // reads from the API server, not from the cache
	recorder events.EventRecorder
	now      time.Time // one time for the whole reconcile: all actions agree on what is due

	cronJob    *v1.CronJob
	read       *v1.CronJob // as it was before the actions
	conditions *condition.Set
}

var _ CronJobControllerManagerImpl = (*impl)(nil)

// NewCronJobControllerManagerImpl returns the actions for one reconcile of a CronJob at a time.
//
// The actions use the live reader only where a stale cache would do harm: before a Job is created,
// and for active Jobs that the cache does not have.
func NewCronJobControllerManagerImpl(
	req *step.Request[*v1.CronJob], live client.Reader, recorder events.EventRecorder, now time.Time,
) CronJobControllerManagerImpl {
	return &impl{
		client: req.Client, live: live, recorder: recorder, now: now,
		cronJob: req.Object, read: req.Snapshot(), conditions: req.Conditions,
	}
}

// ListActiveJobsAndUpdateStatus records the active Jobs and the last run in the status.
func (i *impl) ListActiveJobsAndUpdateStatus(ctx context.Context, _ logr.Logger, jobs []batchv1.Job) (ctrl.Result, error) {
	unseen, err := i.activeButNotIn(ctx, jobs)
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	i.cronJob.Status.Active = nil
	for _, job := range slices.Concat(jobs, unseen) {
		i.noteRun(&job, scheduledAt(&job))
	}
	if !i.cronJob.Status.LastScheduleTime.Equal(i.read.Status.LastScheduleTime) {
		// An earlier reconcile started the run and did not record it.
		i.setOnSchedule()
	}
	return ctrlkit.NoRequeue()
}

// activeButNotIn returns the Jobs that the status lists as active and that are not among the given
// ones. Either they were deleted, or the cache does not have them yet. The API server decides.
func (i *impl) activeButNotIn(ctx context.Context, jobs []batchv1.Job) ([]batchv1.Job, error) {
	var unseen []batchv1.Job
	for _, ref := range i.cronJob.Status.Active {
		if slices.ContainsFunc(jobs, func(job batchv1.Job) bool { return job.UID == ref.UID }) {
			continue
		}
		var job batchv1.Job
		err := i.live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &job)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("checking whether Job %q still exists: %w", ref.Name, err)
		}
		if err == nil && job.UID == ref.UID && metav1.IsControlledBy(&job, i.cronJob) {
			unseen = append(unseen, job)
		}
	}
	return unseen, nil
}

// noteRun records the Job of a run in the status.
func (i *impl) noteRun(job *batchv1.Job, at time.Time) {
	status := &i.cronJob.Status
	if last := status.LastScheduleTime; !at.IsZero() && (last == nil || at.After(last.Time)) {
		status.LastScheduleTime = &metav1.Time{Time: at}
	}
	known := slices.ContainsFunc(status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == job.UID })
	if finishedAs(job) == "" && !known {
		status.Active = append(status.Active, reference(job))
		// The order of lists from the cache is random, and must not change the status.
		slices.SortFunc(status.Active, func(a, b corev1.ObjectReference) int { return strings.Compare(a.Name, b.Name) })
	}
}

// CleanUpOldJobsExceedsHistoryLimits deletes the oldest finished Jobs. A Job whose run is not yet
// recorded in the status stays until the next reconcile: without it, the run would be started again
// if the operator crashes before it writes the status.
func (i *impl) CleanUpOldJobsExceedsHistoryLimits(ctx context.Context, logger logr.Logger, jobs []batchv1.Job) (ctrl.Result, error) {
	old := slices.Concat(
		beyondHistory(jobs, batchv1.JobComplete, i.cronJob.Spec.SuccessfulJobsHistoryLimit, 3),
		beyondHistory(jobs, batchv1.JobFailed, i.cronJob.Spec.FailedJobsHistoryLimit, 1),
	)
	var errs []error
	for _, job := range old {
		recorded, at := i.read.Status.LastScheduleTime, scheduledAt(job)
		if !at.IsZero() && (recorded == nil || at.After(recorded.Time)) {
			continue
		}
		logger.Info("deleting old job", "job", job.Name)
		errs = append(errs, i.deleteJob(ctx, reference(job)))
	}
	return ctrlkit.RequeueIfError(errors.Join(errs...))
}

// deleteJob deletes a Job and, in the background, its Pods. It does not delete a Job of the same
// name with another UID.
func (i *impl) deleteJob(ctx context.Context, ref corev1.ObjectReference) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	err := i.client.Delete(ctx, job,
		client.Preconditions{UID: &ref.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Job %q: %w", ref.Name, err)
	}
	return nil
}
