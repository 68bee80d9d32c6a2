// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/bench/outside"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// addOutside adds the operator whose Widgets stand for resources of the external system of the
// settings, as "ctrlkit init --children external" writes it. Its connection Secrets have the
// names of the Widgets.
func addOutside(mgr ctrl.Manager, settings process.Settings) error {
	if err := operator.Observe(mgr); err != nil {
		return err
	}
	engine, err := step.New(
		step.Options[*widget.Widget]{
			Name: controllerName, Finalizer: widget.Finalizer, Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Cache: mgr.GetCache(),
			Recorder: mgr.GetEventRecorder(controllerName), Observers: operator.ObserversOf(mgr), SkipUnchanged: true,
			Controller: controller.Options{MaxConcurrentReconciles: settings.Workers},
		},
		external.New("Widget", external.Connector[*widget.Widget](outside.NewClient(settings.System)), external.Options[*widget.Widget]{
			Identity: external.ByName(func(obj *widget.Widget) (string, error) { return "w-" + string(obj.UID), nil }),
			Poll:     settings.Poll, StoresOwner: true,
			Policy:           policy.Defaults{IgnoreNamespaces: true},
			ConnectionSecret: func(obj *widget.Widget) string { return obj.Name },
		}))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&widget.Widget{}))
}
