// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Caches by hand.
package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/ctrlkit/ctrlkit/examples/moving/api/v1"
)

const available = "Available"

// CacheReconciler maintains a Deployment for each Cache.
type CacheReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// Reconcile creates or updates the Deployment of the Cache.
func (r *CacheReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	cache := &v1.Cache{}
	if err := r.Get(ctx, req.NamespacedName, cache); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

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
	return ctrl.NewControllerManagedBy(mgr).For(&v1.Cache{}).Owns(&appsv1.Deployment{}).Complete(r)
}
