// Package plain has a reconciler of controller-runtime that reads what nothing watches.
package plain

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type Reconciler struct {
	client.Client
}

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := r.Get(ctx, req.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: deployment.Namespace, Name: deployment.Annotations["secret"]}
	if err := r.Get(ctx, key, &secret); err != nil { // want `corev1.Secret is read here and no controller of this package watches it: a change of it triggers no reconcile. Watch it where the controller is set up \(plain.go:\d+\) with Watches\(&corev1.Secret{}, ...\), or return a time`
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.reconcileParts(ctx, r.Client, &deployment)
}

// reconcileParts is given the client.
func (r *Reconciler) reconcileParts(ctx context.Context, c client.Client, owner *appsv1.Deployment) error {
	var config corev1.ConfigMapList
	if err := c.List(ctx, &config, client.InNamespace(owner.Namespace)); err != nil { // want `corev1.ConfigMap is read here`
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(owner), &corev1.Secret{}); err != nil { // it was reported above
		return err
	}
	var service corev1.Service
	if err := c.Get(ctx, client.ObjectKeyFromObject(owner), &service); err != nil { // want `corev1.Service is read here`
		return c.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: owner.Namespace}})
	}
	service.Labels = owner.Labels
	return c.Update(ctx, &service)
}

func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(r)
}

// Named keeps its client in a field, which another package sets.
type Named struct {
	Client client.Client
}

func (n *Named) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var node corev1.Node
	if err := n.Client.Get(ctx, client.ObjectKey{Name: "control-plane"}, &node); err != nil { // want `corev1.Node is read here`
		return ctrl.Result{}, err
	}
	//nolint:unwatched // on the line above it exempts nothing
	if err := n.Client.Get(ctx, req.NamespacedName, &corev1.Endpoints{}); err != nil { // want `corev1.Endpoints is read here`
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, n.Client.Get(ctx, req.NamespacedName, &corev1.ServiceAccount{}) //nolint:unwatched // its token never changes
}

func (n *Named) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(n)
}
