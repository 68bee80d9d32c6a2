// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/01_cronjob/manager"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// The permissions of the operator. The one for finalizers is for Jobs whose owner reference blocks
// the deletion of their CronJob: some clusters allow such a reference only to clients that may
// update the finalizers of the owner.
//
// +kubebuilder:rbac:groups=batch.ctrlkit.dev,resources=cronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.ctrlkit.dev,resources=cronjobs/status,verbs=patch
// +kubebuilder:rbac:groups=batch.ctrlkit.dev,resources=cronjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=cronjob-operator paths=. output:rbac:dir=config/rbac

// CronJobController reconciles CronJobs.
type CronJobController struct {
	client.Client

	APIReader client.Reader // reads from the API server, not from the cache
	Recorder  events.EventRecorder
	Observers []journal.Observer
	Now       func() time.Time
}

// Engine returns the reconciler. It loads the CronJob, runs its workflow, and saves the status. It
// needs no cleanup: the garbage collector deletes the Jobs, whose owner is the CronJob.
func (c *CronJobController) Engine() (*step.Engine[*v1.CronJob], error) {
	return step.New(step.Options[*v1.CronJob]{
		// The names of controllers are unique in a process, and "cronjob" may be taken.
		Name: "ctrlkit-cronjob", Client: c.Client, APIReader: c.APIReader, Recorder: c.Recorder, Observers: c.Observers,
		Failures: failure.Table{Backoffs: backoffs}, SkipUnchanged: true,
	}, step.Step[*v1.CronJob]{Name: "Runs", Do: step.Workflow(c.runs), Conditions: manager.Conditions()})
}

// runs starts the runs of a CronJob.
func (c *CronJobController) runs(req *step.Request[*v1.CronJob]) ctrlkit.Action {
	state := manager.NewCronJobControllerManagerState(req.Client, req.Object)
	impl := manager.NewCronJobControllerManagerImpl(req, c.APIReader, c.Recorder, c.Now())
	return workflow(manager.NewCronJobControllerManager(state, impl, req.Logger), req.Object)
}

// workflow arranges the actions for a CronJob.
func workflow(mgr *manager.CronJobControllerManager, cronJob *v1.CronJob) ctrlkit.Action {
	return ctrlkit.Finally(
		ctrlkit.Join(
			mgr.CleanUpOldJobsExceedsHistoryLimits(),
			ctrlkit.Sequential(
				// Whether a run may start depends on the active Jobs.
				mgr.ListActiveJobsAndUpdateStatus(),
				ctrlkit.If(!cronJob.Spec.Suspended(), mgr.RunNextScheduledJob()),
			),
		),
		// This runs even if an action above has failed: the status reports it.
		mgr.UpdateCronJobStatus(),
	)
}

// backoffs limit the delay between retries to a minute, because schedules are in minutes: when the
// API server accepts Jobs again, the next one should not be late.
var backoffs = map[failure.Class]failure.Backoff{
	failure.ClassTransient: {Initial: 100 * time.Millisecond, Max: time.Minute},
	failure.ClassThrottled: {Initial: time.Second, Max: time.Minute},
	failure.ClassNotFound:  {Initial: 500 * time.Millisecond, Max: time.Minute},
	failure.ClassForbidden: {Initial: time.Second, Max: time.Minute},
	failure.ClassInvalid:   {Initial: time.Second, Max: time.Minute},
}

// SetupWithManager registers the controller, and the indexes that it needs, with a manager.
func (c *CronJobController) SetupWithManager(mgr ctrl.Manager) error {
	if err := manager.IndexCronJobControllerManager(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexing Jobs by their CronJob: %w", err)
	}
	engine, err := c.Engine()
	if err != nil {
		return err
	}
	return engine.Complete(manager.WatchCronJobControllerManager(ctrl.NewControllerManagedBy(mgr), engine.WatchReader(mgr.GetCache())))
}
