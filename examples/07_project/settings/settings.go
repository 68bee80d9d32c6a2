// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package settings switches features of the operator on and off while it runs, as Settings say.
package settings

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
)

// +kubebuilder:rbac:groups=project.ctrlkit.dev,resources=settings,verbs=get;list;watch

// Features are the handlers that Settings switch, by the names of the Settings.
type Features map[string][]handlers.Entry

// Handlers returns the handler of Settings. A feature is on while its Setting says so: without one it
// is off, so that none runs at the start of the operator before it is known whether it should.
func Handlers(registry *handlers.Registry, features Features) []handlers.Entry {
	s := &switches{registry: registry, features: features, on: make(map[string]*handlers.Registration)}
	return []handlers.Entry{handlers.Handler[*v1.Setting]{Name: "settings", OnChange: s.changed, OnGone: s.gone}}
}

// switches knows which features are on. Handlers are not called twice at the same time for one
// Setting, so that each feature is switched by one of them.
type switches struct {
	registry *handlers.Registry
	features Features

	mu sync.Mutex // for on; it is not held while a feature is switched
	on map[string]*handlers.Registration
}

func (s *switches) changed(ctx context.Context, setting *v1.Setting) error {
	if setting.Spec.State == v1.SettingEnabled {
		return s.switchOn(ctx, setting.Name)
	}
	return s.switchOff(ctx, setting.Name)
}

func (s *switches) gone(ctx context.Context, name client.ObjectKey) error {
	return s.switchOff(ctx, name.Name)
}

func (s *switches) switchOn(ctx context.Context, name string) error {
	entries, known := s.features[name]
	if !known || s.get(name) != nil {
		return nil
	}
	registration, err := s.registry.Register(entries...)
	if err != nil {
		return fmt.Errorf("switching %s on: %w", name, err)
	}
	s.set(name, registration)
	log.FromContext(ctx).Info("A feature was switched on", "feature", name)
	return nil
}

// switchOff returns when no handler of the feature is running any more. What they have made stays
// as it is.
func (s *switches) switchOff(ctx context.Context, name string) error {
	registration := s.get(name)
	if registration == nil {
		return nil
	}
	if err := registration.Stop(ctx); err != nil {
		return fmt.Errorf("switching %s off: %w", name, err)
	}
	s.set(name, nil)
	log.FromContext(ctx).Info("A feature was switched off", "feature", name)
	return nil
}

func (s *switches) get(name string) *handlers.Registration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on[name]
}

func (s *switches) set(name string, registration *handlers.Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[name] = registration
}
