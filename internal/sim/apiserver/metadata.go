// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateMetadata checks the metadata of an object, with the functions of apimachinery that the
// real server uses.
func validateMetadata(k *kind, obj, before *unstructured.Unstructured, subresource string) field.ErrorList {
	meta, err := objectMeta(obj)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata"), nil, err.Error())}
	}
	at := field.NewPath("metadata")
	if before == nil {
		return validation.ValidateObjectMeta(meta, k.namespaced, nameValidation(k), at)
	}
	old, err := objectMeta(before)
	if err != nil {
		return field.ErrorList{field.Invalid(at, nil, err.Error())}
	}
	errs := validation.ValidateObjectMetaUpdate(meta, old, at)
	return append(errs, validation.ValidateObjectMeta(meta, k.namespaced, nameValidation(k), at)...)
}

func objectMeta(obj *unstructured.Unstructured) (*metav1.ObjectMeta, error) {
	meta := &metav1.ObjectMeta{}
	m, _ := obj.Object["metadata"].(map[string]any)
	slim := shallow(m)
	delete(slim, "managedFields")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(slim, meta); err != nil {
		return nil, err
	}
	return meta, nil
}

// nameValidation returns the check of names that the real server does for a kind.
func nameValidation(k *kind) validation.ValidateNameFunc {
	if k.definition != nil {
		return validation.NameIsDNSSubdomain
	}
	switch k.gvk.Group + "/" + k.gvk.Kind {
	case "/Namespace":
		return validation.ValidateNamespaceName
	case "/Service", "apps/StatefulSet":
		return validation.NameIsDNSLabel
	case "policy/PodDisruptionBudget", "rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io/ClusterRole",
		"rbac.authorization.k8s.io/ClusterRoleBinding":
		return pathSegment
	}
	return validation.NameIsDNSSubdomain
}

// pathSegment accepts what can be one element of a path: the names of RBAC objects may contain
// colons, and those of PodDisruptionBudgets are not checked any further.
func pathSegment(name string, prefix bool) []string {
	switch {
	case name == "." || name == "..":
		return []string{"may not be '" + name + "'"}
	case strings.Contains(name, "/"):
		return []string{"may not contain '/'"}
	case strings.Contains(name, "%"):
		return []string{"may not contain '%'"}
	}
	return nil
}
