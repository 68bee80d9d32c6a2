// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accounts creates the default ServiceAccount of each namespace as long as no controller does. The
// API server waits two seconds for it when a Pod is created, and then refuses the Pod.
type accounts struct {
	client client.Client
	exist  map[string]bool // by the namespace
}

// newAccounts returns when the default namespace has its ServiceAccount.
func newAccounts(ctx context.Context, plane *ControlPlane) (*accounts, error) {
	writer, err := plane.client()
	if err != nil {
		return nil, err
	}
	a := &accounts{client: writer, exist: make(map[string]bool)}
	return a, plane.await(ctx, "the default namespace", a.create)
}

// create creates those that are missing. Without the default namespace, which the API server
// creates, it returns an error.
func (a *accounts) create(ctx context.Context) error {
	var namespaces corev1.NamespaceList
	if err := a.client.List(ctx, &namespaces); err != nil {
		return err
	}
	for _, namespace := range namespaces.Items {
		if a.exist[namespace.Name] || namespace.DeletionTimestamp != nil {
			continue
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}
		if err := a.client.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		a.exist[namespace.Name] = true
	}
	if !a.exist[metav1.NamespaceDefault] {
		return errors.New("it does not exist")
	}
	return nil
}

// keep creates accounts until ctx ends.
func (a *accounts) keep(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		_ = a.create(ctx) // the next turn tries again
	}, 200*time.Millisecond)
}
