// Package steps has an engine whose steps read what nothing watches.
package steps

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

type parts struct{}

func (p parts) do(ctx context.Context, req *step.Request[*appsv1.Deployment]) error {
	if _, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: "credentials"}); err != nil { // want `corev1.Secret is read here .* with step.WatchNamed`
		return err
	}
	return p.readPods(ctx, req.Client)
}

func (parts) readPods(ctx context.Context, c client.Client) error {
	return c.List(ctx, &corev1.PodList{}) // want `corev1.Pod is read here`
}

func (parts) cleanUp(ctx context.Context, req *step.Request[*appsv1.Deployment]) error {
	return req.Client.Get(ctx, client.ObjectKey{Name: "quota"}, &corev1.ResourceQuota{}) // want `corev1.ResourceQuota is read here`
}

func want(ctx context.Context, req *step.Request[*appsv1.Deployment], _ *apply.Set) error {
	return req.Client.Get(ctx, client.ObjectKey{Name: "config"}, &corev1.ConfigMap{}) // apply.Owns watches it
}

func setUp(mgr ctrl.Manager) error {
	engine, err := step.New(step.Options[*appsv1.Deployment]{Name: "parts", Client: mgr.GetClient()},
		step.Step[*appsv1.Deployment]{Name: "Parts", Do: parts{}.do, Cleanup: parts{}.cleanUp}, apply.Children("Children", want, apply.Owns(&corev1.ConfigMap{})))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}))
}
