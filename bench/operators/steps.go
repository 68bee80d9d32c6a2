// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/step"
)

// AddSteps adds the operator that is made of steps, with its observers, to a manager, which may be
// that of a shard.
func AddSteps(mgr ctrl.Manager, settings process.Settings) error {
	if err := operator.Observe(mgr); err != nil {
		return err
	}
	engine, err := NewSteps(step.Options[*widget.Widget]{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder(controllerName), Observers: operator.ObserversOf(mgr), SkipUnchanged: true, Shard: operator.ShardOf(mgr),
		Controller: controller.Options{MaxConcurrentReconciles: settings.Workers},
	})
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&widget.Widget{}))
}

// NewSteps returns the operator that is made of steps.
func NewSteps(options step.Options[*widget.Widget]) (*step.Engine[*widget.Widget], error) {
	options.Name, options.Finalizer = controllerName, widget.Finalizer
	return step.New(options, cleanup, childrenStep())
}

// childrenStep returns the step that keeps the three children, and watches them. It is all of the
// operator that depends on how children are declared.
func childrenStep() step.Step[*widget.Widget] {
	return apply.Children("Children", func(_ context.Context, req *step.Request[*widget.Widget], want *apply.Set) error {
		want.Add(ConfigMap(req.Object), Secret(req.Object), Service(req.Object))
		return nil
	}, apply.Owns(&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}))
}

// cleanup is a step that stands for something outside the cluster: an object has a finalizer
// because of it.
var cleanup = step.Step[*widget.Widget]{
	Name:    "Cleanup",
	Cleanup: func(context.Context, *step.Request[*widget.Widget]) error { return nil },
}
