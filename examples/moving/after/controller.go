// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Caches by an engine of steps.
package controller

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/moving/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

const available = "Available"

// CacheReconciler maintains a Deployment for each Cache.
type CacheReconciler struct {
	client.Client
	Scheme *runtime.Scheme

	once   sync.Once
	engine *step.Engine[*v1.Cache]
	err    error
}

// Reconcile is for tests that call it without a manager.
func (r *CacheReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	engine, err := r.newEngine(nil, nil)
	if err != nil {
		return ctrl.Result{}, err
	}
	return engine.Reconcile(ctx, req)
}

// newEngine returns the engine, which the first call creates.
func (r *CacheReconciler) newEngine(live client.Reader, recorder events.EventRecorder) (*step.Engine[*v1.Cache], error) {
	r.once.Do(func() {
		r.engine, r.err = step.New(step.Options[*v1.Cache]{Name: "cache", Client: r.Client, APIReader: live, Recorder: recorder},
			ensureDeployment)
	})
	return r.engine, r.err
}

// ensureDeployment creates or updates the Deployment of a Cache.
var ensureDeployment = step.Step[*v1.Cache]{
	Name:       "EnsureDeployment",
	Conditions: []condition.Declaration{{Type: available}},
	Do:         deploy,
}

func deploy(ctx context.Context, req *step.Request[*v1.Cache]) error {
	if err := apply.Ensure(ctx, req, deploymentOf(req.Object)); err != nil {
		return err
	}
	req.Conditions.MarkHealthy(available, "Deployed", fmt.Sprintf("%d replicas are wanted", req.Object.Spec.Replicas))
	return nil
}

func deploymentOf(cache *v1.Cache) *appsv1.Deployment {
	labels := map[string]string{"cache": cache.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: cache.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(cache.Spec.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cache", Image: "example.com/cache:1"}}},
			},
		},
	}
}

// SetupWithManager adds the controller to a manager.
func (r *CacheReconciler) SetupWithManager(mgr ctrl.Manager) error {
	engine, err := r.newEngine(mgr.GetAPIReader(), mgr.GetEventRecorder("cache"))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&v1.Cache{}).Owns(&appsv1.Deployment{}))
}
