package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/01_cronjob/manager"
)

// What the operator may do. The finalizers are there because a Job says that its CronJob must not go before it, and some
// clusters allow that only to those who may write the finalizers of the CronJob.
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
	logr.Logger

	Live     client.Reader // reads from the API server, past the cache of Client
	Recorder events.EventRecorder
	Now      func() time.Time
}

// Reconcile runs the workflow of a CronJob.
func (c *CronJobController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	logger := c.Logger.WithValues("cronjob", request)

	var cronJob v1.CronJob
	if err := c.Client.Get(ctx, request.NamespacedName, &cronJob); err != nil {
		return ctrlkit.RequeueIfError(client.IgnoreNotFound(err))
	}
	if !cronJob.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the Jobs, which have the CronJob as their owner.
		return ctrlkit.NoRequeue()
	}

	state := manager.NewCronJobControllerManagerState(c.Client, cronJob.DeepCopy())
	impl := manager.NewCronJobControllerManagerImpl(c.Client, cronJob.DeepCopy(), c.Live, c.Recorder, c.Now())
	mgr := manager.NewCronJobControllerManager(state, impl, logger)

	return ctrlkit.IgnoreExit(workflow(mgr, &cronJob).Run(ctx))
}

// workflow says what is done for a CronJob, and in which order.
func workflow(mgr *manager.CronJobControllerManager, cronJob *v1.CronJob) ctrlkit.Action {
	return ctrlkit.Finally(
		ctrlkit.Join(
			mgr.CleanUpOldJobsExceedsHistoryLimits(),
			ctrlkit.Sequential(
				// Whether a run may start depends on the Jobs that are active.
				mgr.ListActiveJobsAndUpdateStatus(),
				ctrlkit.If(!cronJob.Spec.Suspended(), mgr.RunNextScheduledJob()),
			),
		),
		// Always, also if something above has failed: the status says what.
		mgr.UpdateCronJobStatus(),
	)
}

// longestBackoff is how long a CronJob waits at most after an error. Schedules are in minutes: if the API server refuses a Job
// for an hour, the first one that it would accept should not come a quarter of an hour late.
const longestBackoff = time.Minute

// SetupWithManager registers the controller and what it needs in the cache with a manager.
func (c *CronJobController) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := manager.IndexCronJobControllerManager(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexing Jobs by their CronJob: %w", err)
	}
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, longestBackoff)
	// Named, because a process has only one controller of a name, and "cronjob" is easily taken.
	return manager.WatchCronJobControllerManager(ctrl.NewControllerManagedBy(mgr), mgr.GetCache()).
		Named("ctrlkit-cronjob").
		WithOptions(controller.Options{RateLimiter: backoff}).
		Complete(c)
}
