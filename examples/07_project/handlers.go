// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/examples/07_project/access"
	"github.com/ctrlkit/ctrlkit/examples/07_project/backup"
	"github.com/ctrlkit/ctrlkit/examples/07_project/labels"
	"github.com/ctrlkit/ctrlkit/examples/07_project/membership"
	"github.com/ctrlkit/ctrlkit/examples/07_project/quota"
	"github.com/ctrlkit/ctrlkit/examples/07_project/settings"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/operator"
)

//go:generate go tool controller-gen rbac:roleName=project-operator paths=./... output:rbac:dir=config/rbac

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// control adds the handlers to a manager.
func control(mgr ctrl.Manager) error {
	_, err := addHandlers(mgr)
	return err
}

// addHandlers registers the handlers of all packages, and returns their registry. They share one
// cache and one queue for each kind, and do not know each other.
func addHandlers(mgr ctrl.Manager) (*handlers.Registry, error) {
	registry, err := handlers.New(mgr, handlers.Options{
		Name: "project", Recorder: mgr.GetEventRecorder("project-operator"), Observers: operator.ObserversOf(mgr),
		Default: handlers.KindOptions{Workers: 4},
	})
	if err != nil {
		return nil, err
	}
	_, err = registry.Register(slices.Concat(
		membership.Handlers(registry), access.Handlers(), labels.CleanupHandlers(registry), backup.Handlers(registry),
		settings.Handlers(registry, settings.Features{"quota": quota.Handlers(), "labels": labels.Handlers(registry)}),
	)...)
	if err != nil {
		return nil, err
	}
	// A kind that the cluster does not have is named at /readyz/kinds.
	return registry, mgr.AddReadyzCheck("kinds", registry.Ready)
}
