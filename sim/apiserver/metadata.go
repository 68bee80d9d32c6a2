// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ctrlkit/ctrlkit/sim/apiserver/internal/builtin"
)

// validateMetadata checks what every object has.
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

// nameValidation is how the names of a kind have to look.
func nameValidation(k *kind) validation.ValidateNameFunc {
	if k.definition != nil {
		return validation.NameIsDNSSubdomain
	}
	switch k.gvk.Group + "/" + k.gvk.Kind {
	case "/Namespace":
		return validation.ValidateNamespaceName
	case "/Service":
		return validation.NameIsDNS1035Label
	case "rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io/ClusterRole",
		"rbac.authorization.k8s.io/ClusterRoleBinding":
		return pathSegment
	}
	return validation.NameIsDNSSubdomain
}

// pathSegment lets everything pass that can be part of a path.
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

func validateDeleteOptions(o *metav1.DeleteOptions) field.ErrorList {
	return metav1validation.ValidateDeleteOptions(o)
}

// finalizersFor returns the finalizers that an object has after it was asked to be deleted in a way, and whether these are others.
func finalizersFor(k *kind, v *version, o *metav1.DeleteOptions) (finalizers []string, changed bool) {
	before := v.unstructured().GetFinalizers()
	finalizers = slices.DeleteFunc(slices.Clone(before), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	has := func(f string) bool { return slices.Contains(before, f) }
	orphan, foreground := has(metav1.FinalizerOrphanDependents), has(metav1.FinalizerDeleteDependents)
	switch {
	//lint:ignore SA1019 old clients still send it
	case o.OrphanDependents != nil:
		//lint:ignore SA1019 old clients still send it
		orphan, foreground = *o.OrphanDependents, false
	case o.PropagationPolicy != nil:
		orphan = *o.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *o.PropagationPolicy == metav1.DeletePropagationForeground
	case !orphan && !foreground && k.definition == nil && builtin.OrphansByDefault(k.gvk):
		orphan = true
	}
	if orphan {
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	return finalizers, !slices.Equal(before, finalizers)
}

// gracePeriod returns for how many seconds an object stays after it was asked to be deleted. Only Pods that are on a node do.
func (s *Server) gracePeriod(k *kind, v *version, o *metav1.DeleteOptions) int64 {
	if k.gvr.Resource != "pods" || k.gvr.Group != "" {
		return 0
	}
	node, _, _ := unstructured.NestedString(v.content, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(v.content, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if o.GracePeriodSeconds != nil {
		return max(0, *o.GracePeriodSeconds)
	}
	seconds, _, _ := unstructured.NestedInt64(v.content, "spec", "terminationGracePeriodSeconds")
	return seconds
}

// goesWithoutFinalizers reports whether an object that is being deleted goes when its last finalizer has gone.
func (s *Server) goesWithoutFinalizers(k *kind, obj *unstructured.Unstructured) bool {
	if k.gvr.Resource == "namespaces" && k.gvr.Group == "" {
		finalizers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "finalizers")
		return len(finalizers) == 0
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
