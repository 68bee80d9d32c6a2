// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Caches with an engine of one step, which is the Reconcile of
// before.
package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit"
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
			step.Step[*v1.Cache]{Name: "Reconcile", Do: func(ctx context.Context, req *step.Request[*v1.Cache]) error {
				return ctrlkit.AsError(r.do(ctx, req))
			}})
	})
	return r.engine, r.err
}

// do creates or updates the Deployment of the Cache.
func (r *CacheReconciler) do(ctx context.Context, req *step.Request[*v1.Cache]) (ctrl.Result, error) {
	r = &CacheReconciler{Client: req.Client, Scheme: r.Scheme} // from here on, reads and writes go through the request
	logger := log.FromContext(ctx)
	cache := req.Object

	if len(cache.Status.Conditions) == 0 {
		condition := metav1.Condition{Type: available, Status: metav1.ConditionUnknown, Reason: "Starting", Message: "the Deployment was not looked at yet"}
		meta.SetStatusCondition(&cache.Status.Conditions, condition)
		if err := r.Status().Update(ctx, cache); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Get(ctx, client.ObjectKeyFromObject(cache), cache); err != nil {
			return ctrl.Result{}, err
		}
	}

	deployment := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(cache), deployment)
	if apierrors.IsNotFound(err) {
		deployment, err = r.deploymentOf(cache)
		if err != nil {
			return ctrl.Result{}, err
		}
		logger.Info("Creating the Deployment")
		if err := r.Create(ctx, deployment); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: time.Minute}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}

	if *deployment.Spec.Replicas != cache.Spec.Replicas {
		deployment.Spec.Replicas = new(cache.Spec.Replicas)
		if err := r.Update(ctx, deployment); err != nil {
			return ctrl.Result{}, err
		}
	}

	condition := metav1.Condition{Type: available, Status: metav1.ConditionTrue, Reason: "Deployed", Message: fmt.Sprintf("%d replicas are wanted", cache.Spec.Replicas)}
	meta.SetStatusCondition(&cache.Status.Conditions, condition)
	return ctrl.Result{}, r.Status().Update(ctx, cache)
}

func (r *CacheReconciler) deploymentOf(cache *v1.Cache) (*appsv1.Deployment, error) {
	labels := map[string]string{"cache": cache.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, Name: cache.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(cache.Spec.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cache", Image: "example.com/cache:1"}}},
			},
		},
	}
	return deployment, ctrl.SetControllerReference(cache, deployment, r.Scheme)
}

// SetupWithManager adds the controller to a manager.
func (r *CacheReconciler) SetupWithManager(mgr ctrl.Manager) error {
	engine, err := r.newEngine(mgr.GetAPIReader(), mgr.GetEventRecorder("cache"))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&v1.Cache{}).Owns(&appsv1.Deployment{}))
}
