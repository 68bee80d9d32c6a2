// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package membership counts the Namespaces of a Project, in its status.
package membership

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=project.ctrlkit.dev,resources=projects,verbs=get;list;watch
// +kubebuilder:rbac:groups=project.ctrlkit.dev,resources=projects/status,verbs=patch

// ConditionPopulated is true if a Project has a Namespace.
const ConditionPopulated = "Populated"

// Handlers returns the handlers of this package.
func Handlers(registry *handlers.Registry) []handlers.Entry {
	reader := registry.Client()
	count := func(ctx context.Context, project *v1.Project) error {
		var namespaces corev1.NamespaceList
		if err := reader.List(ctx, &namespaces, client.MatchingLabels{v1.ProjectLabel: project.Name}); err != nil {
			return fmt.Errorf("listing the Namespaces of the Project: %w", err)
		}
		project.Status.Namespaces = int32(len(namespaces.Items)) //nolint:gosec // a cluster has fewer
		if len(namespaces.Items) == 0 {
			return ctrlkit.Wait(fmt.Sprintf("a Namespace with the label %s=%s", v1.ProjectLabel, project.Name))
		}
		return nil
	}
	return []handlers.Entry{
		handlers.Status("membership", ConditionPopulated, count, step.WatchLabeled(&corev1.Namespace{}, v1.ProjectLabel)),
	}
}
