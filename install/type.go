// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Type is one version of a kind, defined by a Go type.
//
// The schema has what Go knows: the names and types of fields, by their json tags. Where a type has
// markers of controller-gen, use the files that it generates: they also have the validation.
type Type struct {
	// Object is the kind, as a pointer to its struct: &v1.Website{}. It may be nil.
	Object runtime.Object
	// Kind is its group, version and kind.
	Kind schema.GroupVersionKind
	// Plural and Singular are lower-case names; the usual ones by default.
	Plural, Singular string
	ShortNames       []string
	Categories       []string
	// Scope is Namespaced by default.
	Scope apiextensionsv1.ResourceScope
	// Columns are what kubectl get prints beside the name and the age.
	Columns []apiextensionsv1.CustomResourceColumnDefinition
	// Scale is the subresource of that name, nil for none. A kind with a field status always has
	// the subresource status.
	Scale *apiextensionsv1.CustomResourceSubresourceScale
	// Adjust may change the schema: add an enum, a pattern, a rule. It may be nil.
	Adjust func(schema *apiextensionsv1.JSONSchemaProps)
}

// FromTypes returns the definitions of kinds. Types of the same group and plural are versions of one
// definition: all are served, and the first one is stored. The others give it no names.
func FromTypes(types ...Type) ([]*Definition, error) {
	var all []*Definition
	byName := map[string]*Definition{}
	for n := range types {
		t := &types[n]
		d, err := t.definition()
		if err != nil {
			return nil, fmt.Errorf("defining %s: %w", t.Kind.Kind, err)
		}
		first := byName[d.Name]
		if first == nil {
			byName[d.Name] = d
			all = append(all, d)
			continue
		}
		if first.Spec.Names.Kind != d.Spec.Names.Kind || first.Spec.Scope != d.Spec.Scope || versionOf(first, t.Kind.Version) != nil {
			return nil, fmt.Errorf("defining %s: version %s has another kind or scope than the first one of %s, or is there already", t.Kind.Kind, t.Kind.Version, d.Name)
		}
		d.Spec.Versions[0].Storage = false
		first.Spec.Versions = append(first.Spec.Versions, d.Spec.Versions[0])
	}
	return all, nil
}

func (t *Type) definition() (*Definition, error) {
	if t.Kind.Group == "" || t.Kind.Version == "" || t.Kind.Kind == "" {
		return nil, fmt.Errorf("its Kind is %v: set group, version and kind", t.Kind)
	}
	of := reflect.TypeOf(t.Object)
	if of == nil || of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("its Object is a %T: use a pointer to the struct of the kind", t.Object)
	}
	props, err := schemaOf(of.Elem())
	if err != nil {
		return nil, err
	}
	if t.Adjust != nil {
		t.Adjust(props)
	}
	plural, singular := meta.UnsafeGuessKindToResource(t.Kind)
	names := apiextensionsv1.CustomResourceDefinitionNames{
		Kind: t.Kind.Kind, ListKind: t.Kind.Kind + "List", Plural: plural.Resource, Singular: singular.Resource,
		ShortNames: t.ShortNames, Categories: t.Categories,
	}
	if t.Plural != "" {
		names.Plural = t.Plural
	}
	if t.Singular != "" {
		names.Singular = t.Singular
	}
	v := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: t.Kind.Version, Served: true, Storage: true, AdditionalPrinterColumns: t.Columns,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
	}
	if _, has := props.Properties["status"]; has || t.Scale != nil {
		v.Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: t.Scale}
		if has {
			v.Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
		}
	}
	d := &Definition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: t.Kind.Group, Scope: t.Scope, Names: names, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{v}}}
	if d.Spec.Scope == "" {
		d.Spec.Scope = apiextensionsv1.NamespaceScoped
	}
	d.Name = names.Plural + "." + t.Kind.Group
	d.APIVersion, d.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	if strings.ToLower(d.Name) != d.Name {
		return nil, fmt.Errorf("its name %s is not in lower case", d.Name)
	}
	return d, check(d)
}
