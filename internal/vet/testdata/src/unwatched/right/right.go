// Package right watches what it reads, or reads it for something else.
package right

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type Reconciler struct {
	client.Client

	APIReader client.Reader
	workload  client.Client // of another cluster
}

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := r.Get(ctx, req.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, obj := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		if err := r.Get(ctx, req.NamespacedName, obj); err != nil {
			return ctrl.Result{}, err
		}
	}
	var secret corev1.Secret
	if err := r.Get(ctx, req.NamespacedName, &secret); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.List(ctx, &corev1.ConfigMapList{}); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.workload.Get(ctx, req.NamespacedName, &corev1.Node{}); err != nil { // nothing shows which cluster it is
		return ctrl.Result{}, err
	}
	dynamic := &unstructured.Unstructured{}
	if err := r.Get(ctx, req.NamespacedName, dynamic); err != nil { // of any kind
		return ctrl.Result{}, err
	}
	if err := r.confirm(ctx, req.NamespacedName); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.mark(ctx, req.NamespacedName)
}

// confirm asks the API server for what the cache does not have.
func (r *Reconciler) confirm(ctx context.Context, key client.ObjectKey) error {
	if err := r.Get(ctx, key, &corev1.Service{}); err != nil {
		return r.APIReader.Get(ctx, key, &corev1.Service{})
	}
	return nil
}

// mark reads what it changes, and removes what others made.
func (r *Reconciler) mark(ctx context.Context, key client.ObjectKey) error {
	var node corev1.Node
	if err := r.Get(ctx, client.ObjectKey{Name: key.Name}, &node); err != nil {
		return err
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, "example.com/marked", "true")
	if err := r.Update(ctx, &node); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := r.Delete(ctx, &pods.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) requests(ctx context.Context, secret client.Object) []reconcile.Request {
	var classes corev1.ServiceAccountList // for a watch, not for a reconcile
	if r.List(ctx, &classes) != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(secret)}}
}

func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	configs := source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.requests)).
		WatchesRawSource(configs).
		Complete(r)
}

// Elsewhere is set up by another package.
type Elsewhere struct{ client.Client }

func (r *Elsewhere) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, r.Get(ctx, req.NamespacedName, &corev1.Endpoints{})
}

// Polling comes again after a time.
type Polling struct{ client.Client }

func (r *Polling) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.Get(ctx, req.NamespacedName, &corev1.Endpoints{}); err != nil {
		return ctrl.Result{}, err
	}
	return r.later()
}

func (r *Polling) later() (result ctrl.Result, err error) {
	result.RequeueAfter = time.Minute
	return result, nil
}

// Inspect is called by a command, not by a controller.
func (r *Polling) Inspect(ctx context.Context) error { return r.List(ctx, &corev1.EventList{}) }

func (r *Polling) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(r)
}
