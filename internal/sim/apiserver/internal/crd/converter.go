// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const metaName = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// newConverter returns what server-side apply knows of the versions of a kind. A write through one
// version also finds out which fields it takes from managers that have written another.
func newConverter(versions []*Version) (managedfields.TypeConverter, error) {
	models := map[string]*spec.Schema{metaName: objectMeta(), "ownerReference": ownerReference()}
	for _, v := range versions {
		models["resource."+v.GVK.Version] = schemaOf(v.GVK, v.structural)
	}
	return managedfields.NewTypeConverter(models, false)
}

// schemaOf returns the schema of a version as the real server publishes it, as far as server-side apply
// uses it.
func schemaOf(gvk schema.GroupVersionKind, structural *structuralschema.Structural) *spec.Schema {
	root := structural.DeepCopy().ToKubeOpenAPI()
	withReferences(root, structural)
	if root.Properties == nil {
		root.Properties = map[string]spec.Schema{}
	}
	root.Properties["apiVersion"] = *spec.StringProperty()
	root.Properties["kind"] = *spec.StringProperty()
	root.Properties["metadata"] = *spec.RefSchema("#/definitions/" + metaName)
	root.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	return root
}

// withReferences adds the fields that every object has to embedded objects.
func withReferences(s *spec.Schema, structural *structuralschema.Structural) {
	if structural.XEmbeddedResource {
		if s.Properties == nil {
			s.Properties = map[string]spec.Schema{}
		}
		s.Properties["apiVersion"] = *spec.StringProperty()
		s.Properties["kind"] = *spec.StringProperty()
		s.Properties["metadata"] = *spec.RefSchema("#/definitions/" + metaName)
	}
	for name, child := range structural.Properties {
		if property, ok := s.Properties[name]; ok {
			withReferences(&property, &child)
			s.Properties[name] = property
		}
	}
	if structural.Items != nil && s.Items != nil && s.Items.Schema != nil {
		withReferences(s.Items.Schema, structural.Items)
	}
}

// objectMeta returns the schema of ObjectMeta as the real server publishes it, as far as
// server-side apply uses it.
func objectMeta() *spec.Schema {
	text := *spec.StringProperty()
	texts := *spec.MapProperty(spec.StringProperty())
	finalizers := *spec.ArrayProperty(spec.StringProperty())
	finalizers.AddExtension("x-kubernetes-list-type", "set")
	owners := *spec.ArrayProperty(spec.RefSchema("#/definitions/ownerReference"))
	owners.AddExtension("x-kubernetes-list-type", "map")
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	return object(map[string]spec.Schema{
		"annotations": texts, "labels": texts, "finalizers": finalizers, "ownerReferences": owners, "name": text, "generateName": text,
		"namespace": text, "uid": text, "resourceVersion": text, "selfLink": text, "creationTimestamp": text, "deletionTimestamp": text,
		"generation": *spec.Int64Property(), "deletionGracePeriodSeconds": *spec.Int64Property(),
		"managedFields": *spec.ArrayProperty(object(nil)),
	})
}

func ownerReference() *spec.Schema {
	text := *spec.StringProperty()
	s := object(map[string]spec.Schema{
		"apiVersion": text, "kind": text, "name": text, "uid": text, "blockOwnerDeletion": *spec.BooleanProperty(), "controller": *spec.BooleanProperty(),
	})
	s.AddExtension("x-kubernetes-map-type", "atomic")
	return s
}

func object(properties map[string]spec.Schema) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
}
