// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package access gives the members of a Project their roles in its Namespaces.
package access

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/apply"
	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// The operator may bind no other roles than these, and none that it does not have.
//
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=bind,resourceNames=view;edit;admin
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=namespaces/finalizers,verbs=update
// +kubebuilder:rbac:groups=project.ctrlkit.dev,resources=projects,verbs=get;list;watch

// Handlers returns the handlers of this package.
func Handlers() []handlers.Entry {
	return []handlers.Entry{
		handlers.Steps("access", handlers.StepsOptions[*corev1.Namespace]{
			Related: []step.Watch{step.WatchNamed(&v1.Project{}, v1.KeysOf)},
		}, apply.Children("Access", wanted, apply.Owns(&rbacv1.RoleBinding{}))),
	}
}

// wanted adds a RoleBinding for each role that members of the Project of a Namespace have.
func wanted(ctx context.Context, req *step.Request[*corev1.Namespace], want *apply.Set) error {
	project, err := v1.ProjectOf(ctx, req.Client, req.APIReader, req.Object)
	if err != nil || project == nil {
		return err
	}
	for _, role := range []v1.Role{"view", "edit", "admin"} {
		if subjects := subjectsOf(project, role); len(subjects) > 0 {
			want.Add(newBinding(req.Object.Name, role, subjects))
		}
	}
	return nil
}

func newBinding(namespace string, role v1.Role, subjects []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "project-" + string(role)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: string(role)},
		Subjects:   subjects,
	}
}

// subjectsOf returns the members with a role.
func subjectsOf(project *v1.Project, role v1.Role) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for _, m := range project.Spec.Members {
		if m.Role == role {
			subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: string(m.Kind), Name: m.Name})
		}
	}
	return subjects
}
