package guide

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MemcachedReconciler keeps a Deployment for each Memcached.
type MemcachedReconciler struct{ client.Client }

// Reconcile makes the Deployment what the Memcached wants.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &Memcached{}
	if err := r.Get(ctx, req.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{}
	err := r.Get(ctx, req.NamespacedName, deployment)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.Create(ctx, r.deploymentFor(memcached)); err != nil {
			return ctrl.Result{}, err
		}
	case err != nil:
		return ctrl.Result{}, err
	case *deployment.Spec.Replicas != memcached.Spec.Size:
		deployment.Spec.Replicas = &memcached.Spec.Size
		if err := r.Update(ctx, deployment); err != nil {
			return ctrl.Result{}, err
		}
	}
	if !memcached.Status.Ready {
		memcached.Status.Ready = true
		return ctrl.Result{}, r.Status().Update(ctx, memcached)
	}
	return ctrl.Result{}, nil
}

func (r *MemcachedReconciler) deploymentFor(m *Memcached) *appsv1.Deployment {
	labels := map[string]string{"memcached": m.Name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &m.Spec.Size, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "memcached:1.6"}}},
			},
		},
	}
	if err := ctrl.SetControllerReference(m, d, r.Scheme()); err != nil {
		panic(err) // both are in the scheme, and in one namespace
	}
	return d
}

// SetupWithManager adds the controller to a manager.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Memcached{}).Owns(&appsv1.Deployment{}).Complete(r)
}
