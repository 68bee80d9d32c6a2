// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/step"
)

// An Operator is one way to keep Widgets with controller-runtime.
type Operator struct {
	// Name is a word, as it is given on the command line.
	Name string
	// Configure changes the options of the manager to the best setting of the operator. It may be
	// nil.
	Configure func(*ctrl.Options)
	// Add adds the controller to a manager.
	Add func(ctrl.Manager, process.Settings) error
	// AddHandlers adds as many handlers of ConfigMaps as the settings want, which do nothing, in the
	// way in which one has many handlers of a kind with the operator's library. It is nil for
	// operators of which that is not measured.
	AddHandlers func(ctrl.Manager, process.Settings) error
}

// Outside returns the operators whose Widgets stand for resources of an external system.
func Outside() []Operator {
	return []Operator{{Name: "external", Configure: asOperator, Add: addOutside}}
}

// All returns the operators of children.
func All() []Operator {
	return []Operator{
		{Name: "limit", Configure: stripManagedFields, Add: byHand(func(c client.Client) reconcile.Reconciler { return &limit{Client: c} })},
		{Name: "ctrlkit", Configure: asOperator, Add: AddSteps},
		{Name: "handlers", Configure: shareCaches, Add: addShared, AddHandlers: addSharedHandlers},
		{Name: "careful", Configure: stripManagedFields, Add: byHand(NewCareful), AddHandlers: addControllers},
		{Name: "careful-unstripped", Add: byHand(NewCareful)},
		{Name: "careful-concurrent", Configure: stripManagedFields, Add: byHand(func(c client.Client) reconcile.Reconciler { return &careful{Client: c, each: atOnce} })},
		{Name: "careful-ryw", Configure: readYourWrites, Add: byHand(NewCareful)},
		{Name: "apply-always", Configure: stripManagedFields, Add: byHand(func(c client.Client) reconcile.Reconciler { return &applyAlways{c} })},
		{Name: "usual", Add: byHand(func(c client.Client) reconcile.Reconciler { return &usual{c} })},
	}
}

// Options returns the options of the manager of an operator. What all have in common: a cache of one
// namespace, metrics served on a free port of this machine.
func (o Operator) Options(settings process.Settings) (ctrl.Options, error) {
	scheme, err := widget.NewScheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	options := ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "127.0.0.1:0"}}
	options.Cache.DefaultNamespaces = map[string]cache.Config{settings.Namespace: {}}
	if settings.Resync > 0 {
		// Of Widgets alone, so that there is one event for each object.
		options.Cache.ByObject = map[client.Object]cache.ByObject{&widget.Widget{}: {SyncPeriod: &settings.Resync}}
	}
	if settings.Election {
		options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "widgets", settings.Namespace
		options.Controller.EnableWarmup = new(true)
	}
	if o.Configure != nil {
		o.Configure(&options)
	}
	return options, nil
}

func stripManagedFields(options *ctrl.Options) {
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
}

// asOperator sets what the manager of an operator.Operator has.
func asOperator(options *ctrl.Options) {
	options.Cache.DefaultTransform = apply.CacheTransform()
	options.MapperProvider = step.NewRESTMapper
}

func readYourWrites(options *ctrl.Options) {
	stripManagedFields(options)
	options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
}

// byHand returns how to add a reconciler that is written with controller-runtime alone.
func byHand(reconciler func(client.Client) reconcile.Reconciler) func(ctrl.Manager, process.Settings) error {
	return func(mgr ctrl.Manager, settings process.Settings) error {
		return watches(mgr).Named(controllerName).WithOptions(controller.Options{MaxConcurrentReconciles: settings.Workers}).
			Complete(reconciler(mgr.GetClient()))
	}
}

// controllerName is the name of all controllers, by which their metrics are found.
const controllerName = "widget"

// watches returns the builder of a controller of Widgets and their children.
func watches(mgr ctrl.Manager) *ctrl.Builder {
	return ctrl.NewControllerManagedBy(mgr).For(&widget.Widget{}).
		Owns(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(&corev1.Service{})
}

// Named returns the operator with a name.
func Named(name string) (Operator, error) {
	all := slices.Concat(All(), Outside())
	i := slices.IndexFunc(all, func(o Operator) bool { return o.Name == name })
	if i < 0 {
		return Operator{}, fmt.Errorf("there is no operator %q", name)
	}
	return all[i], nil
}
