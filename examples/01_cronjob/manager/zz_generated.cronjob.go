// Written by hand in the shape of what ctrlkit generates from cronjob.ctrlkit, until the generator can do it.

package manager

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

const _ = ctrlkit.SupportsGeneratedV1

const indexJobController = "ctrlkit:CronJob/.metadata.controller"

type CronJobControllerManagerStateGetter interface {
	Target() *v1.CronJob
	GetJobs(ctx context.Context) ([]batchv1.Job, error)
}

type CronJobControllerManagerState struct {
	client.Reader
	target *v1.CronJob
}

func NewCronJobControllerManagerState(reader client.Reader, target *v1.CronJob) *CronJobControllerManagerState {
	return &CronJobControllerManagerState{Reader: reader, target: target}
}

func (s *CronJobControllerManagerState) Target() *v1.CronJob { return s.target }

func (s *CronJobControllerManagerState) GetJobs(ctx context.Context) ([]batchv1.Job, error) {
	var list batchv1.JobList
	err := s.List(ctx, &list, client.InNamespace(s.target.Namespace),
		client.MatchingLabels{"cronjob": s.target.Name}, client.MatchingFields{indexJobController: s.target.Name})
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	var owned []batchv1.Job
	for _, job := range list.Items {
		if metav1.IsControlledBy(&job, s.target) {
			owned = append(owned, job)
		}
	}
	return owned, nil
}

type CronJobControllerManagerFakeState struct {
	Object  *v1.CronJob
	Jobs    []batchv1.Job
	JobsErr error
}

func (s *CronJobControllerManagerFakeState) Target() *v1.CronJob { return s.Object }

func (s *CronJobControllerManagerFakeState) GetJobs(context.Context) ([]batchv1.Job, error) {
	return s.Jobs, s.JobsErr
}

type CronJobControllerManagerImpl interface {
	// List all active jobs, and update the status.
	ListActiveJobsAndUpdateStatus(ctx context.Context, logger logr.Logger, jobs []batchv1.Job) (ctrl.Result, error)

	// Clean up old jobs according to the history limit.
	CleanUpOldJobsExceedsHistoryLimits(ctx context.Context, logger logr.Logger, jobs []batchv1.Job) (ctrl.Result, error)

	// Run the next job if it's on time, or otherwise we should wait
	// until the next scheduled time.
	RunNextScheduledJob(ctx context.Context, logger logr.Logger) (ctrl.Result, error)

	// Update status of CronJob.
	UpdateCronJobStatus(ctx context.Context, logger logr.Logger) (ctrl.Result, error)
}

type CronJobControllerManager struct {
	state  CronJobControllerManagerStateGetter
	impl   CronJobControllerManagerImpl
	logger logr.Logger
	opts   []ctrlkit.ActionOption
}

func NewCronJobControllerManager(
	state CronJobControllerManagerStateGetter, impl CronJobControllerManagerImpl, logger logr.Logger, opts ...ctrlkit.ActionOption,
) *CronJobControllerManager {
	return &CronJobControllerManager{state: state, impl: impl, logger: logger, opts: opts}
}

func (m *CronJobControllerManager) ListActiveJobsAndUpdateStatus() ctrlkit.ReconcileAction {
	return ctrlkit.WrapAction("ListActiveJobsAndUpdateStatus", func(ctx context.Context) (ctrl.Result, error) {
		jobs, err := m.state.GetJobs(ctx)
		if err != nil {
			return ctrlkit.RequeueIfError(err)
		}
		return m.impl.ListActiveJobsAndUpdateStatus(ctx, m.logger.WithValues("action", "ListActiveJobsAndUpdateStatus"), jobs)
	}, m.opts...)
}

func (m *CronJobControllerManager) CleanUpOldJobsExceedsHistoryLimits() ctrlkit.ReconcileAction {
	return ctrlkit.WrapAction("CleanUpOldJobsExceedsHistoryLimits", func(ctx context.Context) (ctrl.Result, error) {
		jobs, err := m.state.GetJobs(ctx)
		if err != nil {
			return ctrlkit.RequeueIfError(err)
		}
		return m.impl.CleanUpOldJobsExceedsHistoryLimits(ctx, m.logger.WithValues("action", "CleanUpOldJobsExceedsHistoryLimits"), jobs)
	}, m.opts...)
}

func (m *CronJobControllerManager) RunNextScheduledJob() ctrlkit.ReconcileAction {
	return ctrlkit.WrapAction("RunNextScheduledJob", func(ctx context.Context) (ctrl.Result, error) {
		return m.impl.RunNextScheduledJob(ctx, m.logger.WithValues("action", "RunNextScheduledJob"))
	}, m.opts...)
}

func (m *CronJobControllerManager) UpdateCronJobStatus() ctrlkit.ReconcileAction {
	return ctrlkit.WrapAction("UpdateCronJobStatus", func(ctx context.Context) (ctrl.Result, error) {
		return m.impl.UpdateCronJobStatus(ctx, m.logger.WithValues("action", "UpdateCronJobStatus"))
	}, m.opts...)
}

func IndexCronJobControllerManager(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &batchv1.Job{}, indexJobController, func(obj client.Object) []string {
		owner := metav1.GetControllerOfNoCopy(obj)
		if owner == nil || owner.Kind != "CronJob" || owner.APIVersion != v1.GroupVersion.String() {
			return nil
		}
		return []string{owner.Name}
	})
}

func WatchCronJobControllerManager(b *builder.Builder) *builder.Builder {
	return b.For(&v1.CronJob{}).Owns(&batchv1.Job{})
}
