// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package labels puts the labels of a Project on its Namespaces, and takes them off again.
package labels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=project.ctrlkit.dev,resources=projects,verbs=get;list;watch;patch

// inheritedAnnotation lists the labels that a Namespace has from its Project, separated by commas.
// These are taken off again, and no others.
const inheritedAnnotation = "project.ctrlkit.dev/inherited-labels"

// Handlers returns the handler that puts the labels of a Project on its Namespaces.
func Handlers(registry *handlers.Registry) []handlers.Entry {
	i := inheritance{registry.Client(), registry.APIReader()}
	return []handlers.Entry{
		handlers.Handler[*corev1.Namespace]{
			Name: "labels", OnChange: i.inherit,
			Selects: func(ns *corev1.Namespace) bool { return ns.DeletionTimestamp.IsZero() },
			Related: []step.Watch{step.WatchNamed(&v1.Project{}, v1.KeysOf)},
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

// inherit puts on the labels that a Namespace should have: none if its Project is being deleted.
func (i inheritance) inherit(ctx context.Context, ns *corev1.Namespace) error {
	project, err := v1.ProjectOf(ctx, i.client, i.live, ns)
	if err != nil {
		return err
	}
	var wanted map[string]string
	if project != nil && project.DeletionTimestamp.IsZero() {
		wanted = project.Spec.Labels
	}
	return i.patch(ctx, ns, wanted)
}

// remove takes off what inherit has put on. It reads from the API server, because a cache may not
// have the latest Namespace yet.
func (i inheritance) remove(ctx context.Context, project *v1.Project) error {
	var namespaces corev1.NamespaceList
	if err := i.live.List(ctx, &namespaces, client.MatchingLabels{v1.ProjectLabel: project.Name}); err != nil {
		return fmt.Errorf("listing the Namespaces of the Project: %w", err)
	}
	for _, ns := range namespaces.Items {
		if err := i.patch(ctx, &ns, nil); err != nil {
			return fmt.Errorf("taking the labels off Namespace %s: %w", ns.Name, err)
		}
	}
	return nil
}

// patch puts labels on a Namespace, and takes off those that it no longer inherits. It writes
// nothing if nothing differs. The patch has the resource version that was read, so that it changes
// nothing that was decided meanwhile. An apply instead would need permission to create Namespaces:
// the API server demands it for one that is gone.
func (i inheritance) patch(ctx context.Context, ns *corev1.Namespace, wanted map[string]string) error {
	changed := ns.DeepCopy()
	relabel(changed, wanted)
	if maps.Equal(changed.Labels, ns.Labels) && changed.Annotations[inheritedAnnotation] == ns.Annotations[inheritedAnnotation] {
		return nil
	}
	patch := client.MergeFromWithOptions(ns, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(i.client.Patch(ctx, changed, patch))
}

// relabel replaces the labels that a Namespace has inherited. A label that it has by itself, with the
// wanted value, is not inherited: it stays when the Project no longer has it.
func relabel(ns *corev1.Namespace, wanted map[string]string) {
	before := strings.FieldsFunc(ns.Annotations[inheritedAnnotation], func(r rune) bool { return r == ',' })
	var inherited []string
	for key, value := range wanted {
		if current, exists := ns.Labels[key]; !exists || current != value || slices.Contains(before, key) {
			metav1.SetMetaDataLabel(&ns.ObjectMeta, key, value)
			inherited = append(inherited, key)
		}
	}
	for _, key := range before {
		if _, ok := wanted[key]; !ok {
			delete(ns.Labels, key)
		}
	}
	if len(inherited) == 0 {
		delete(ns.Annotations, inheritedAnnotation)
		return
	}
	slices.Sort(inherited)
	metav1.SetMetaDataAnnotation(&ns.ObjectMeta, inheritedAnnotation, strings.Join(inherited, ","))
}
