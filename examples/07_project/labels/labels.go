// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package labels puts the labels of a Project on its Namespaces, and takes them off again.
package labels

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=project.ctrlkit.dev,resources=projects,verbs=get;list;watch;patch

// fieldOwner owns the labels that come from a Project, and no others: when one leaves what is
// applied, the API server takes it off.
const fieldOwner = "project-labels"

// Handlers returns the handler that puts the labels of a Project on its Namespaces.
func Handlers(registry *handlers.Registry) []handlers.Entry {
	i := inheritance{registry.Client(), registry.APIReader()}
	return []handlers.Entry{
		handlers.Handler[*corev1.Namespace]{
			Name: "labels", OnChange: i.inherit,
			Selects: func(ns *corev1.Namespace) bool { return ns.DeletionTimestamp.IsZero() },
			Related: []handlers.Relation{handlers.NamedBy(&v1.Project{}, v1.KeysOf)},
		},
	}
}

// CleanupHandlers returns the handler that takes the labels of a Project off its Namespaces before
// the Project is gone, also if no labels are put on any more: it is never switched off.
func CleanupHandlers(registry *handlers.Registry) []handlers.Entry {
	i := inheritance{registry.Client(), registry.APIReader()}
	return []handlers.Entry{
		handlers.Handler[*v1.Project]{Name: "labels cleanup", OnRemove: i.remove, Finalizer: "project.ctrlkit.dev/labels"},
	}
}

type inheritance struct {
	client client.Client
	live   client.Reader
}

// inherit applies the labels that a Namespace should have: none if its Project is being deleted.
func (i inheritance) inherit(ctx context.Context, ns *corev1.Namespace) (ctrl.Result, error) {
	project, err := v1.ProjectOf(ctx, i.client, i.live, ns)
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	var wanted map[string]string
	if project != nil && project.DeletionTimestamp.IsZero() {
		wanted = project.Spec.Labels
	}
	return ctrlkit.RequeueIfError(i.apply(ctx, ns, wanted))
}

// remove takes off what inherit has applied. It reads from the API server, because a cache may not
// have the latest Namespace yet.
func (i inheritance) remove(ctx context.Context, project *v1.Project) (ctrl.Result, error) {
	var namespaces corev1.NamespaceList
	if err := i.live.List(ctx, &namespaces, client.MatchingLabels{v1.ProjectLabel: project.Name}); err != nil {
		return ctrlkit.RequeueIfError(fmt.Errorf("listing the Namespaces of the Project: %w", err))
	}
	for _, ns := range namespaces.Items {
		if err := i.apply(ctx, &ns, nil); client.IgnoreNotFound(err) != nil {
			return ctrlkit.RequeueIfError(fmt.Errorf("taking the labels off Namespace %s: %w", ns.Name, err))
		}
	}
	return ctrlkit.NoRequeue()
}

// apply applies labels. It writes nothing if they are those that were applied before.
func (i inheritance) apply(ctx context.Context, ns *corev1.Namespace, wanted map[string]string) error {
	applied, err := corev1ac.ExtractNamespace(ns, fieldOwner)
	if err != nil || maps.Equal(wanted, applied.Labels) {
		return err
	}
	// With the resource version, a Namespace that is gone meanwhile is not created again.
	intent := corev1ac.Namespace(ns.Name).WithResourceVersion(ns.ResourceVersion).WithLabels(wanted)
	return i.client.Apply(ctx, intent, client.FieldOwner(fieldOwner), client.ForceOwnership)
}
