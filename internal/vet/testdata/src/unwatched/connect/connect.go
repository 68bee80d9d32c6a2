// Package connect has external resources whose credentials nothing watches.
package connect

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
)

type buckets struct{}

func (buckets) Connect(ctx context.Context, req *step.Request[*corev1.ConfigMap]) (external.Client[*corev1.ConfigMap], error) {
	if err := req.Client.Get(ctx, client.ObjectKey{Name: "store"}, &corev1.Secret{}); err != nil { // want `corev1.Secret is read here to connect to an external system, .* Add &corev1.Secret\{\} to Reads of external.Options`
		return nil, err
	}
	return nil, errors.ErrUnsupported
}

type queues struct{}

func (queues) Connect(ctx context.Context, req *step.Request[*appsv1.Deployment]) (external.Client[*appsv1.Deployment], error) {
	scopes := external.CredentialScopes{Namespace: "store"}
	if _, err := scopes.Get(ctx, req.Client, req.Object.Namespace); err != nil { // want `corev1.Secret is read here to connect to an external system, .* Add &corev1.Secret\{\} to Reads of external.Options`
		return nil, err
	}
	return nil, errors.ErrUnsupported
}

func setUp(mgr ctrl.Manager) error {
	bucket := external.New("Bucket", buckets{}, external.Options[*corev1.ConfigMap]{Identity: external.ByToken[*corev1.ConfigMap]()})
	configs, err := step.New(step.Options[*corev1.ConfigMap]{Name: "buckets", Client: mgr.GetClient()}, bucket)
	if err != nil {
		return err
	}
	if err := configs.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{})); err != nil {
		return err
	}
	queue := external.New("Queue", queues{}, external.Options[*appsv1.Deployment]{Identity: external.ByToken[*appsv1.Deployment]()})
	deployments, err := step.New(step.Options[*appsv1.Deployment]{Name: "queues", Client: mgr.GetClient()}, queue)
	if err != nil {
		return err
	}
	return deployments.Complete(ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}))
}
