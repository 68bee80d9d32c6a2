// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package handlers shares one cache and one queue for each kind among many handlers, which packages
// register that do not know each other:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{NewCache: handlers.NewCache})
//	...
//	registry, err := handlers.New(mgr, handlers.Options{Name: "project"})
//	...
//	registration, err := registry.Register(
//		handlers.Handler[*corev1.Namespace]{Name: "labels", OnChange: inheritLabels},
//		handlers.Handler[*v1.Project]{Name: "tenant", OnChange: createTenant, OnRemove: deleteTenant},
//		handlers.Generate("quota", quotas, apply.Owns(&corev1.ResourceQuota{})),
//	)
//
// Each handler has its own copy of the object, its own error and its own backoff: one that fails is
// called again, and the others are not. Registrations come and go while the manager runs, by
// [Registration.Stop]; a kind that no handler needs any more is released, and one that the API
// server does not have is waited for.
//
// A [Handler] is a function that is called. [Steps] makes one of package step instead, with a
// finalizer, conditions and one write for what has changed; [Status] and [Generate] are the common
// ones. Controllers and engines of their own work beside a registry in the same manager, and share
// its caches.
package handlers
