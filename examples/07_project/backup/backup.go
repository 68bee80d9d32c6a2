// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package backup says where the backups of a BackupPlan are stored: in a directory of the Project.
//
// BackupPlan is a kind of another program, which may be installed later than the operator, removed,
// and installed again. This package has no Go type for it.
package backup

import (
	"context"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=backup.ctrlkit.dev,resources=backupplans,verbs=get;list;watch
// +kubebuilder:rbac:groups=backup.ctrlkit.dev,resources=backupplans/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// PlanKind is the kind of plans for backups.
var PlanKind = schema.GroupVersionKind{Group: "backup.ctrlkit.dev", Version: "v1", Kind: "BackupPlan"}

// Handlers returns the handlers of this package.
func Handlers(registry *handlers.Registry) []handlers.Entry {
	l := locator{registry.Client()}
	return []handlers.Entry{
		handlers.Handler[*unstructured.Unstructured]{
			Name: "backup location", Kind: PlanKind, OnChange: l.locate,
			Related: []step.Watch{step.WatchNamed(&corev1.Namespace{}, namespaceOf)},
		},
	}
}

func namespaceOf(plan *unstructured.Unstructured) []client.ObjectKey {
	return []client.ObjectKey{{Name: plan.GetNamespace()}}
}

type locator struct{ client client.Client }

// locate writes the location of the backups to the status of a plan, if it is another one.
func (l locator) locate(ctx context.Context, plan *unstructured.Unstructured) error {
	var ns corev1.Namespace
	if err := l.client.Get(ctx, client.ObjectKey{Name: plan.GetNamespace()}, &ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	project := ns.Labels[v1.ProjectLabel]
	if project == "" {
		project = "none"
	}
	location := path.Join(project, plan.GetNamespace(), plan.GetName())
	if now, _, _ := unstructured.NestedString(plan.Object, "status", "location"); now == location {
		return nil
	}
	before := plan.DeepCopy()
	if err := unstructured.SetNestedField(plan.Object, location, "status", "location"); err != nil {
		return err
	}
	return client.IgnoreNotFound(l.client.Status().Patch(ctx, plan, client.MergeFrom(before)))
}
