// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller holds the controller and the workflow of the CronJob example as they stand in
// the framework's founding text, word for word; only the import paths are others.
//
//nolint:discarded // the text's own deferred action is never run, which is what ctrlkit vet is for
package controller

import (
	"context"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	apiv1 "github.com/ctrlkit/ctrlkit/internal/language/gen/golden/seed/api/v1"
	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden/seed/manager"
)

// Workflow is the workflow of the example.
func Workflow(mgr *manager.CronJobControllerManager, cronJob *apiv1.CronJob) ctrlkit.ReconcileAction {
	return (
	// Run these actions and doesn't care the order, and join the results.
	ctrlkit.Join(
		// Update the status of CronJob as always.
		mgr.ListActiveJobsAndUpdateStatus(),
		// Clean the old completed/failed jobs according to the limits.
		mgr.CleanUpOldJobsExceedsHistoryLimits(),
		// Try to run the next scheduled job when not suspended, otherwise do nothing.
		ctrlkit.If(cronJob.Spec.Suspend == nil || *cronJob.Spec.Suspend, mgr.RunNextScheduledJob()),
	))
}

// A CronJobController is the controller of the example.
type CronJobController struct {
	client.Client
	logr.Logger
}

// Reconcile is the example.
func (c *CronJobController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	logger := c.Logger.WithValues("cronjob", request)

	// Get CronJob object with client.
	var cronJob apiv1.CronJob
	if err := c.Client.Get(ctx, request.NamespacedName, &cronJob); err != nil {
		if apierrors.IsNotFound(err) {
			logger.Info("object not found, skip")
			return ctrlkit.NoRequeue()
		}
		logger.Error(err, "unable to get object")
		return ctrlkit.RequeueIfError(err)
	}

	// Build state and impl for controller manager.
	state := manager.NewCronJobControllerManagerState(c.Client, cronJob.DeepCopy())
	impl := manager.NewCronJobControllerManagerImpl(c.Client, cronJob.DeepCopy())
	mgr := manager.NewCronJobControllerManager(state, impl, logger)

	// Always update the status after actions have run.
	defer mgr.UpdateCronJobStatus()

	// Assemble the actions and run.
	return ctrlkit.IgnoreExit(
		// Run these actions and doesn't care the order, and join the results.
		ctrlkit.Join(
			// Update the status of CronJob as always.
			mgr.ListActiveJobsAndUpdateStatus(),
			// Clean the old completed/failed jobs according to the limits.
			mgr.CleanUpOldJobsExceedsHistoryLimits(),
			// Try to run the next scheduled job when not suspended, otherwise do nothing.
			ctrlkit.If(cronJob.Spec.Suspend == nil || *cronJob.Spec.Suspend, mgr.RunNextScheduledJob()),
		).Run(ctx),
	)
}
