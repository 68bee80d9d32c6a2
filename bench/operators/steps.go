// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/observe"
	"github.com/ctrlkit/ctrlkit/step"
)

// addSteps adds the operator that is made of steps, with its observers.
func addSteps(mgr ctrl.Manager, settings process.Settings) error {
	observer, err := observe.Manager(mgr)
	if err != nil {
		return err
	}
	engine, err := step.New(step.Options[*widget.Widget]{
		Name: controllerName, Finalizer: widget.Finalizer, Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder(controllerName), Observers: []journal.Observer{observer}, SkipUnchanged: true,
		Controller: controller.Options{MaxConcurrentReconciles: settings.Workers},
	}, cleanup{}, childrenStep())
	if err != nil {
		return err
	}
	return engine.Complete(watches(mgr))
}

// childrenStep returns the step that keeps the three children. It is all of the operator that
// depends on how children are declared.
func childrenStep() step.Step[*widget.Widget] {
	keep := func(name string, child func(*widget.Widget) client.Object) step.Step[*widget.Widget] {
		return step.Func(name, func(ctx context.Context, req *step.Request[*widget.Widget]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(step.EnsureChild(ctx, req, child(req.Object)))
		})
	}
	return step.Group("Children",
		keep("ConfigMap", func(w *widget.Widget) client.Object { return ConfigMap(w) }),
		keep("Secret", func(w *widget.Widget) client.Object { return Secret(w) }),
		keep("Service", func(w *widget.Widget) client.Object { return Service(w) }),
	)
}

// cleanup is a step that stands for something outside the cluster: an object has a finalizer
// because of it.
type cleanup struct{}

var _ step.Cleaner[*widget.Widget] = cleanup{}

func (cleanup) Name() string { return "Cleanup" }

func (cleanup) Do(context.Context, *step.Request[*widget.Widget]) (ctrl.Result, error) {
	return ctrlkit.NoRequeue()
}

func (cleanup) Cleanup(context.Context, *step.Request[*widget.Widget]) (ctrl.Result, error) {
	return ctrlkit.NoRequeue()
}
