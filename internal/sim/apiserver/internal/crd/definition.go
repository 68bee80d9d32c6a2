// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package crd compiles CustomResourceDefinitions for the API server in memory. The libraries of the
// real server (k8s.io/apiextensions-apiserver) do nearly all of the work.
package crd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/registry/rest"
)

// A Definition is a compiled CustomResourceDefinition. It is immutable.
type Definition struct {
	Group      string
	Names      apiextensionsv1.CustomResourceDefinitionNames
	Namespaced bool
	Versions   []*Version // those that are served, in the order of the definition
	Storage    string     // the version in which objects are stored
}

// A Version is one version of a definition.
type Version struct {
	GVK        schema.GroupVersionKind
	Status     bool   // has the subresource status
	Scale      *Scale // has the subresource scale, if not nil
	Selectable []string

	// Unconvertible is set if only the conversion webhook of the definition can convert objects of
	// this version: it is not the stored version and has another schema.
	Unconvertible bool

	schemas
	outline *outline // what the schemas are compiled from when they are used first; nil if they are
}

// schemas is what a version is compiled to.
type schemas struct {
	structural      *structuralschema.Structural
	schemaValidator validation.SchemaValidator
	statusValidator validation.SchemaValidator
	cel             *cel.Validator
	converter       managedfields.TypeConverter
	convertor       rest.TableConvertor
}

// Scale holds the paths of the fields of a scale subresource.
type Scale struct {
	Replicas       []string
	StatusReplicas []string
	Selector       []string // nil: there is none
}

var (
	compiledMu sync.Mutex
	compiled   = map[[sha256.Size]byte]*Definition{}
)

// Compile checks a CustomResourceDefinition as the real server does and compiles it. Compiling
// takes milliseconds, so that equal specs are compiled once per process.
func Compile(definition *apiextensionsv1.CustomResourceDefinition) (*Definition, field.ErrorList) {
	data, err := json.Marshal(map[string]any{"name": definition.Name, "spec": definition.Spec})
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	key := sha256.Sum256(data)
	compiledMu.Lock()
	known := compiled[key]
	compiledMu.Unlock()
	if known != nil {
		return known, nil
	}
	d, errs := compile(definition)
	if len(errs) > 0 {
		return nil, errs
	}
	compiledMu.Lock()
	defer compiledMu.Unlock()
	compiled[key] = d
	return d, nil
}

func compile(definition *apiextensionsv1.CustomResourceDefinition) (*Definition, field.ErrorList) {
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	if internal.Status.StoredVersions == nil {
		for _, v := range internal.Spec.Versions {
			if v.Storage {
				internal.Status.StoredVersions = append(internal.Status.StoredVersions, v.Name)
			}
		}
	}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		return nil, errs
	}
	d := newDefinition(definition)
	served := 0
	for i := range definition.Spec.Versions {
		v := &definition.Spec.Versions[i]
		if !v.Served {
			continue
		}
		if err := d.Versions[served].compile(v); err != nil {
			return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "versions").Index(i).Child("schema"), v.Name, err.Error())}
		}
		served++
	}
	converter, err := newConverter(d.Versions)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "versions"), "", "compiling the schemas for server-side apply: "+err.Error())}
	}
	for _, v := range d.Versions {
		v.converter = converter
	}
	return d, nil
}

// newDefinition returns a definition whose versions are not compiled.
func newDefinition(definition *apiextensionsv1.CustomResourceDefinition) *Definition {
	spec := definition.Spec
	d := &Definition{Group: spec.Group, Names: spec.Names, Namespaced: spec.Scope == apiextensionsv1.NamespaceScoped}
	for _, v := range spec.Versions {
		if v.Storage {
			d.Storage = v.Name
		}
		if !v.Served {
			continue
		}
		version := &Version{GVK: schema.GroupVersionKind{Group: spec.Group, Version: v.Name, Kind: spec.Names.Kind}}
		for _, f := range v.SelectableFields {
			version.Selectable = append(version.Selectable, strings.TrimPrefix(f.JSONPath, "."))
		}
		if v.Subresources != nil {
			version.Status = v.Subresources.Status != nil
			version.Scale = newScale(v.Subresources.Scale)
		}
		d.Versions = append(d.Versions, version)
	}
	if HasWebhook(definition) {
		d.noteUnconvertible(definition)
	}
	return d
}

// compile makes the schemas of a version, without those of server-side apply.
func (version *Version) compile(v *apiextensionsv1.CustomResourceDefinitionVersion) error {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return fmt.Errorf("converting the schema: %w", err)
	}
	var err error
	if version.structural, err = structuralschema.NewStructural(props); err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	if err := defaulting.PruneDefaults(version.structural); err != nil {
		return fmt.Errorf("pruning the defaults: %w", err)
	}
	if version.schemaValidator, _, err = validation.NewSchemaValidator(props); err != nil {
		return fmt.Errorf("compiling the schema: %w", err)
	}
	if status, ok := props.Properties["status"]; ok {
		if version.statusValidator, _, err = validation.NewSchemaValidator(&status); err != nil {
			return fmt.Errorf("compiling the schema of the status: %w", err)
		}
	}
	version.cel = cel.NewValidator(version.structural, true, celconfig.PerCallLimit)
	version.convertor = newConvertor(v)
	return nil
}

func newScale(s *apiextensionsv1.CustomResourceSubresourceScale) *Scale {
	if s == nil {
		return nil
	}
	path := func(p string) []string { return strings.Split(strings.TrimPrefix(p, "."), ".") }
	scale := &Scale{Replicas: path(s.SpecReplicasPath), StatusReplicas: path(s.StatusReplicasPath)}
	if s.LabelSelectorPath != nil && *s.LabelSelectorPath != "" {
		scale.Selector = path(*s.LabelSelectorPath)
	}
	return scale
}

// TypeConverter returns the schema in the form that server-side apply uses.
func (v *Version) TypeConverter() managedfields.TypeConverter { return v.converter }

// Normalize removes the fields that the schema does not have, and returns a message about each. It
// brings embedded metadata into their canonical form, and returns an error if it cannot.
func (v *Version) Normalize(content map[string]any) (unknown []string, err error) {
	metadata, unknownMetadata, err := v.normalizeMetadata(content)
	if err != nil {
		return nil, err
	}
	paths := pruning.PruneWithOptions(content, v.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if metadata != nil {
		content["metadata"] = metadata
	}
	if fieldError, more := objectmeta.CoerceWithOptions(nil, content, v.structural, false, objectmeta.CoerceOptions{DropInvalidFields: false, ReturnUnknownFieldPaths: true}); fieldError != nil {
		return nil, fieldError
	} else {
		paths = append(paths, more...)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(content, v.structural)
	for _, p := range append(paths, unknownMetadata...) {
		unknown = append(unknown, fmt.Sprintf("unknown field %q", p))
	}
	slices.Sort(unknown)
	return slices.Compact(unknown), nil
}

// normalizeMetadata returns the metadata of an object in the form of the Go type.
func (v *Version) normalizeMetadata(content map[string]any) (metadata any, unknown []string, err error) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return nil, unknown, nil
	}
	copied := map[string]any{}
	if err := objectmeta.SetObjectMeta(copied, meta); err != nil {
		return nil, nil, err
	}
	return copied["metadata"], unknown, nil
}

// Default sets the defaults of the schema.
func (v *Version) Default(content map[string]any) { defaulting.Default(content, v.structural) }

// Validate checks a new object. known are the errors in its metadata: as upstream, CEL rules are
// not evaluated if some kinds of errors are known.
func (v *Version) Validate(content map[string]any, known field.ErrorList) field.ErrorList {
	ctx := context.Background()
	errs := validation.ValidateCustomResource(nil, content, v.schemaValidator)
	errs = append(errs, v.validateScale(content)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, content, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, content)...)
	return append(errs, v.rules(slices.Concat(known, errs), content, nil)...)
}

// ValidateUpdate checks a changed object. As upstream (ratcheting), it accepts errors that the old
// object already has, in parts that did not change.
func (v *Version) ValidateUpdate(content, old map[string]any, subresource string, known field.ErrorList) field.ErrorList {
	ctx := context.Background()
	correlated := common.NewCorrelatedObject(content, old, &model.Structural{Structural: v.structural})
	ratcheting := validation.WithRatcheting(correlated)
	var errs field.ErrorList
	switch {
	case subresource == "status" && v.statusValidator != nil:
		if status, ok := content["status"]; ok {
			errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], v.statusValidator, validation.WithRatcheting(correlated.Key("status")))
		}
	case subresource == "status":
	default:
		errs = validation.ValidateCustomResourceUpdate(nil, content, old, v.schemaValidator, ratcheting)
	}
	errs = append(errs, v.validateScale(content)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, content, v.structural, false)...)
	if before := listtype.ValidateListSetsAndMaps(nil, v.structural, old); len(before) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, content)...)
	}
	return append(errs, v.rules(slices.Concat(known, errs), content, old, cel.WithRatcheting(correlated))...)
}

// rules evaluates the CEL rules, unless errs has an error of a kind after which upstream does not
// evaluate them.
func (v *Version) rules(errs field.ErrorList, content, old map[string]any, options ...cel.Option) field.ErrorList {
	if v.cel == nil {
		return nil
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
		}
	}
	var before any
	if old != nil {
		before = old
	}
	found, _ := v.cel.Validate(context.Background(), nil, v.structural, content, before, celconfig.RuntimeCELCostBudget, options...)
	return found
}

// validateScale checks the fields of the subresource scale.
func (v *Version) validateScale(content map[string]any) field.ErrorList {
	if v.Scale == nil {
		return nil
	}
	var errs field.ErrorList
	for _, path := range [][]string{v.Scale.Replicas, v.Scale.StatusReplicas} {
		at := field.NewPath("." + strings.Join(path, "."))
		replicas, _, err := unstructured.NestedInt64(content, path...)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at, replicas, err.Error()))
		case replicas < 0:
			errs = append(errs, field.Invalid(at, replicas, "should be a non-negative integer"))
		case replicas > math.MaxInt32:
			errs = append(errs, field.Invalid(at, replicas, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	return errs
}
