// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager has the generated manager of the CronJob example, and actions that log their
// states.
package manager

import (
	"context"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	apiv1 "github.com/ctrlkit/ctrlkit/internal/language/gen/golden/seed/api/v1"
)

// An impl logs the number of Jobs.
type impl struct {
	client  client.Client
	cronJob *apiv1.CronJob
}

// NewCronJobControllerManagerImpl returns the actions for a CronJob.
func NewCronJobControllerManagerImpl(c client.Client, cronJob *apiv1.CronJob) CronJobControllerManagerImpl {
	return &impl{client: c, cronJob: cronJob}
}

func (i *impl) ListActiveJobsAndUpdateStatus(_ context.Context, logger logr.Logger, jobs []batchv1.Job) (ctrl.Result, error) {
	logger.Info("Listed", "jobs", len(jobs))
	return ctrlkit.NoRequeue()
}

func (i *impl) CleanUpOldJobsExceedsHistoryLimits(ctx context.Context, logger logr.Logger, jobs []batchv1.Job) (ctrl.Result, error) {
	logger.Info("Cleaning up", "jobs", len(jobs))
	for j := range jobs {
		if err := i.client.Delete(ctx, &jobs[j]); client.IgnoreNotFound(err) != nil {
			return ctrlkit.RequeueIfError(err)
		}
	}
	return ctrlkit.NoRequeue()
}

func (i *impl) RunNextScheduledJob(_ context.Context, logger logr.Logger) (ctrl.Result, error) {
	logger.Info("Running the next job", "schedule", i.cronJob.Spec.Schedule)
	return ctrlkit.NoRequeue()
}

func (i *impl) UpdateCronJobStatus(_ context.Context, logger logr.Logger) (ctrl.Result, error) {
	logger.Info("Updating the status")
	return ctrlkit.NoRequeue()
}
