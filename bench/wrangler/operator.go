// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rancher/lasso/pkg/cache"
	"github.com/rancher/lasso/pkg/client"
	"github.com/rancher/lasso/pkg/controller"
	"github.com/rancher/wrangler/v3/pkg/apply"
	"github.com/rancher/wrangler/v3/pkg/generated/controllers/core"
	"github.com/rancher/wrangler/v3/pkg/generic"
	"github.com/rancher/wrangler/v3/pkg/relatedresource"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/bench/operators"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// kind is the kind of Widgets.
var kind = widget.Resource.GroupVersion().WithKind("Widget")

// An operator keeps the children of Widgets in a set of apply.
type operator struct {
	widgets *generic.Controller[*widget.Widget, *widget.List]
	apply   apply.Apply
	all     atomic.Int64 // reconciles
	failed  failures
}

// failures counts the errors that are logged: one for each reconcile in which a handler failed,
// unless because of a conflict, which is not logged.
type failures struct{ atomic.Int64 }

var _ logrus.Hook = (*failures)(nil)

// Levels returns the levels that count.
func (*failures) Levels() []logrus.Level { return []logrus.Level{logrus.ErrorLevel} }

// Fire counts an entry.
func (f *failures) Fire(*logrus.Entry) error {
	f.Add(1)
	return nil
}

// reconciles returns how many reconciles have ended, and how many in an error.
func (o *operator) reconciles() (all, errors int) { return int(o.all.Load()), int(o.failed.Load()) }

// start starts the operator, and returns when its caches are filled. Its settings:
//
//   - Each child is listed from the cache of an informer, with an index by set
//     (WithCacheTypes), and owned by its Widget (WithSetOwnerReference).
//   - The limit of one apply a second for each set, which is the default, is lifted
//     (WithRateLimiting).
//   - A change of a child leads to its owner by relatedresource.Watch.
func start(ctx context.Context, config *rest.Config, settings process.Settings) (*operator, error) {
	controllers, err := factory(config, settings)
	if err != nil {
		return nil, err
	}
	factory, err := core.NewFactoryFromConfigWithOptions(config, &core.FactoryOptions{SharedControllerFactory: controllers})
	if err != nil {
		return nil, err
	}
	discovery, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	children := factory.Core().V1()
	o := &operator{widgets: generic.NewController[*widget.Widget, *widget.List](kind, widget.Resource.Resource, true, controllers)}
	logrus.AddHook(&o.failed)
	o.apply = apply.New(discovery, apply.NewClientFactory(config)).
		WithCacheTypes(children.ConfigMap(), children.Secret(), children.Service()).
		WithSetID("widget").WithSetOwnerReference(true, true).WithRateLimiting(100_000)
	o.widgets.OnRemove(ctx, "widget", func(_ string, w *widget.Widget) (*widget.Widget, error) { return w, nil })
	o.widgets.OnChange(ctx, "widget", o.onChange)
	relatedresource.Watch(ctx, "widget-children", relatedresource.OwnerResolver(true, kind.GroupVersion().String(), kind.Kind), o.widgets,
		children.ConfigMap(), children.Secret(), children.Service())
	if err := factory.Sync(ctx); err != nil {
		return nil, err
	}
	return o, factory.Start(ctx, settings.Workers)
}

// startHandlers starts handlers of ConfigMaps that do nothing, on one shared controller.
func startHandlers(ctx context.Context, config *rest.Config, settings process.Settings) (*operator, error) {
	controllers, err := factory(config, settings)
	if err != nil {
		return nil, err
	}
	factory, err := core.NewFactoryFromConfigWithOptions(config, &core.FactoryOptions{SharedControllerFactory: controllers})
	if err != nil {
		return nil, err
	}
	o := &operator{}
	for i := range settings.Handlers {
		factory.Core().V1().ConfigMap().OnChange(ctx, fmt.Sprintf("idle-%02d", i), func(_ string, c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			o.all.Add(1)
			return c, nil
		})
	}
	if err := factory.Sync(ctx); err != nil {
		return nil, err
	}
	return o, factory.Start(ctx, settings.Workers)
}

// factory returns what makes controllers of one namespace.
func factory(config *rest.Config, settings process.Settings) (controller.SharedControllerFactory, error) {
	scheme, err := widget.NewScheme()
	if err != nil {
		return nil, err
	}
	clients, err := client.NewSharedClientFactory(config, &client.SharedClientFactoryOptions{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	options := &cache.SharedCacheFactoryOptions{DefaultNamespace: settings.Namespace}
	if settings.Resync > 0 {
		options.KindResync = map[schema.GroupVersionKind]time.Duration{kind: settings.Resync}
	}
	return controller.NewSharedControllerFactory(cache.NewSharedCachedFactory(clients, options), &controller.SharedControllerFactoryOptions{
		DefaultWorkers: settings.Workers,
	}), nil
}

// onChange brings a Widget closer to its desired state.
func (o *operator) onChange(_ string, w *widget.Widget) (*widget.Widget, error) {
	defer o.all.Add(1)
	if w == nil || w.DeletionTimestamp != nil {
		return w, nil
	}
	before := w
	w = w.DeepCopyObject().(*widget.Widget) //nolint:errcheck // a copy has the type
	w.SetGroupVersionKind(kind)             // what apply finds the owner by
	if err := o.apply.WithOwner(w).ApplyObjects(operators.ConfigMap(w), operators.Secret(w), service(w)); err != nil {
		return w, fmt.Errorf("applying the children: %w", err)
	}
	operators.SetReady(w)
	if equality.Semantic.DeepEqual(before.Status, w.Status) {
		return w, nil
	}
	return o.widgets.UpdateStatus(w)
}

// service returns the Service with the default of its target port spelled out: its type encodes the
// zero, which apply would write each time.
func service(w *widget.Widget) *corev1.Service {
	s := operators.Service(w)
	s.Spec.Ports[0].TargetPort = intstr.FromInt32(s.Spec.Ports[0].Port)
	return s
}
