// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=demo.ctrlkit.dev,resources=rwexternals,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=demo.ctrlkit.dev,resources=rwexternals/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=rwexternal-operator paths=. output:rbac:dir=config/rbac
//go:generate go tool ctrlkit generate finalizer-policy --finalizer demo.ctrlkit.dev/rwexternal --output config/admission/policy.yaml rwexternals.v1.demo.ctrlkit.dev

// control adds the controller of RWExternals to a manager.
func control(mgr ctrl.Manager) error {
	return step.Control(mgr, step.Options[*v1.RWExternal]{
		Name: "rwexternal", SkipUnchanged: true, // it depends only on the spec and two Secrets
	}, input, newOutput())
}

func inputOf(obj *v1.RWExternal) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.Namespace, Name: obj.Spec.InputSecret}
}

func outputOf(obj *v1.RWExternal) types.NamespacedName {
	return types.NamespacedName{
		Namespace: cmp.Or(obj.Spec.OutputSecret.Namespace, obj.Namespace),
		Name:      cmp.Or(obj.Spec.OutputSecret.Name, obj.Name+"-output"),
	}
}
