// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package quota keeps a ResourceQuota in each Namespace of a Project that has a quota.
package quota

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/apply"
	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=namespaces/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=project.ctrlkit.dev,resources=projects,verbs=get;list;watch

// Handlers returns the handlers of this package.
func Handlers() []handlers.Entry {
	return []handlers.Entry{
		handlers.Steps("quota", handlers.StepsOptions[*corev1.Namespace]{
			Related: []step.Watch{step.WatchNamed(&v1.Project{}, v1.KeysOf)},
		}, apply.Children("Quota", wanted, apply.Owns(&corev1.ResourceQuota{}))),
	}
}

// wanted adds the ResourceQuota that a Namespace should have. One that has left its Project, or
// whose Project is gone, should have none.
func wanted(ctx context.Context, req *step.Request[*corev1.Namespace], want *apply.Set) error {
	project, err := v1.ProjectOf(ctx, req.Client, req.APIReader, req.Object)
	if err != nil || project == nil || len(project.Spec.Quota) == 0 {
		return err
	}
	want.Add(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Name, Name: "project"},
		Spec:       corev1.ResourceQuotaSpec{Hard: project.Spec.Quota},
	})
	return nil
}
