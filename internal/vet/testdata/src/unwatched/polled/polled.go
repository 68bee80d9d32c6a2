// Package polled has an engine that comes again after a time, and one whose actions do.
package polled

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

func read(ctx context.Context, req *step.Request[*appsv1.Deployment]) error {
	return req.Client.Get(ctx, client.ObjectKey{Name: "config"}, &corev1.ConfigMap{})
}

// poll is another step of the same object.
func poll(context.Context, *step.Request[*appsv1.Deployment]) error {
	return ctrlkit.RequeueWithin(time.Minute)
}

type action struct{ client client.Client }

func (action) Description() string { return "poll" }
func (a action) Run(ctx context.Context) (ctrl.Result, error) {
	if err := a.client.Get(ctx, client.ObjectKey{Name: "config"}, &corev1.ConfigMap{}); err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	return ctrl.Result{}, ctrlkit.Poll("the config", time.Minute)
}

func run(req *step.Request[*corev1.Pod]) ctrlkit.Action { return action{req.Client} }

func setUp(mgr ctrl.Manager) error {
	deployments, err := step.New(step.Options[*appsv1.Deployment]{Name: "read", Client: mgr.GetClient()}, step.Step[*appsv1.Deployment]{Name: "Read", Do: read}, step.Step[*appsv1.Deployment]{Name: "Poll", Do: poll})
	if err != nil {
		return err
	}
	if err := deployments.Complete(ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{})); err != nil {
		return err
	}
	pods, err := step.New(step.Options[*corev1.Pod]{Name: "run", Client: mgr.GetClient()}, step.Step[*corev1.Pod]{Name: "Run", Do: step.Workflow(run)})
	if err != nil {
		return err
	}
	return pods.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}))
}
