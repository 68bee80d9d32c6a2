// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/operator"
)

// The names of the registry and of its handler, of which package handlers makes that of the engine.
const (
	registryName = "bench"
	handlerName  = "children"
	fieldOwner   = registryName + "-widget-" + handlerName
)

// shareCaches has the cache count who uses its informers, and keep of managed fields what package
// apply needs.
func shareCaches(options *ctrl.Options) {
	options.NewCache = handlers.NewCache
	options.Cache.DefaultTransform = apply.CacheTransform()
}

// addShared adds the operator as a handler of a registry, with the same steps and observers as
// AddSteps. It asks for resyncs, which handlers do not have by default.
func addShared(mgr ctrl.Manager, settings process.Settings) error {
	if err := operator.Observe(mgr); err != nil {
		return err
	}
	registry, err := handlers.New(mgr, handlers.Options{
		Name: registryName, Recorder: mgr.GetEventRecorder(registryName), Observers: operator.ObserversOf(mgr),
		Default: handlers.KindOptions{Workers: settings.Workers},
	})
	if err != nil {
		return err
	}
	_, err = registry.Register(handlers.Steps(handlerName, handlers.StepsOptions[*widget.Widget]{
		Finalizer: widget.Finalizer, Complete: true, SkipUnchanged: true, Resync: true,
	}, cleanup, childrenStep()))
	return err
}

// addSharedHandlers adds handlers of ConfigMaps to one registry: they share a cache and a queue.
func addSharedHandlers(mgr ctrl.Manager, settings process.Settings) error {
	registry, err := handlers.New(mgr, handlers.Options{Name: "idle", Default: handlers.KindOptions{Workers: settings.Workers}})
	if err != nil {
		return err
	}
	var all []handlers.Entry
	for i := range settings.Handlers {
		all = append(all, handlers.Handler[*corev1.ConfigMap]{
			Name:     fmt.Sprintf("idle-%02d", i),
			OnChange: func(context.Context, *corev1.ConfigMap) error { return ctrlkit.AsError(idle()) },
		})
	}
	_, err = registry.Register(all...)
	return err
}
