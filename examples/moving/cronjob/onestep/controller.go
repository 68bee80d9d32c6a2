// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles CronJobs with an engine of one step, which is the Reconcile of
// before.
package controller

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	before "github.com/ctrlkit/ctrlkit/examples/moving/cronjob/before"
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
			step.Step[*v1.CronJob]{Name: "Reconcile", Do: r.do})
	})
	return r.engine, r.err
}

// do is the body of before. Its reads and writes go through the request.
func (r *CronJobReconciler) do(ctx context.Context, req *step.Request[*v1.CronJob]) error {
	body := &before.CronJobReconciler{Client: req.Client, Scheme: r.Scheme, Clock: r.Clock}
	return ctrlkit.AsError(body.Do(ctx, req.Object))
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
