// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// SchemaName returns the name of the schema of a version in OpenAPI documents: the group reversed, the
// version and the kind.
func (v *Version) SchemaName() string {
	group := strings.Split(v.GVK.Group, ".")
	slices.Reverse(group)
	return fmt.Sprintf("%s.%s.%s", strings.Join(group, "."), v.GVK.Version, v.GVK.Kind)
}

// Schema returns the schema of a version for OpenAPI v3, in which prefix begins the references to the
// schemas of built-in types.
func (v *Version) Schema(prefix string) *spec.Schema {
	s := v.structural.DeepCopy().ToKubeOpenAPI()
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	described := metav1.TypeMeta{}.SwaggerDoc()
	s.Properties["apiVersion"] = *spec.StringProperty().WithDescription(described["apiVersion"])
	s.Properties["kind"] = *spec.StringProperty().WithDescription(described["kind"])
	s.Properties["metadata"] = *spec.RefSchema(prefix + metaName).WithDescription("Standard object's metadata.")
	s.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": v.GVK.Group, "version": v.GVK.Version, "kind": v.GVK.Kind}})
	return s
}
