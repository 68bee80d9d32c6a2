// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/module"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// isDefinitions reports whether a bind names definitions and no Go package: ./FILE, ./DIRECTORY,
// MODULE:DIRECTORY or MODULE@VERSION:DIRECTORY. None of them can be the path of a Go import.
func isDefinitions(source string) bool {
	if first, _, _ := strings.Cut(source, "/"); first == "." || first == ".." {
		return true
	}
	of, below, ok := strings.Cut(source, ":")
	path, _, _ := strings.Cut(of, "@")
	return ok && module.CheckImportPath(path) == nil && !strings.HasPrefix(below, "/")
}

// key is what a [Loader] calls the package of the bind in a document of the directory.
func (b *binding) key(dir string) string {
	switch source := b.path.Text; {
	case !isDefinitions(source):
		return source
	case strings.HasPrefix(source, "."):
		return b.word.Text + " " + source + " " + dir
	default:
		return b.word.Text + " " + source
	}
}

// sourceOf returns what a document writes for the package with a key.
func sourceOf(key string) string {
	if words := strings.SplitN(key, " ", 3); len(words) > 1 {
		return words[1]
	}
	return key
}

func noPackage() *Package {
	return &Package{Definitions: true, Facts: Facts{ClusterScoped: map[string]bool{}, Resources: map[string]string{}, Docs: map[string]string{}}}
}

// NewDefinitions returns the package with a key that has the kinds of a group and version, which
// the label is, from definitions.
func NewDefinitions(key, label string, list []*definitions.Definition) *Package {
	p := noPackage()
	pkg := types.NewPackage(key, "")
	served := map[string]bool{}
	for _, d := range list {
		for i := range d.Spec.Versions {
			version := &d.Spec.Versions[i]
			if !version.Served {
				continue
			}
			served[gvLabel(d.Spec.Group, version.Name)] = true
			if gvLabel(d.Spec.Group, version.Name) == label {
				(&schemaTypes{pkg}).addKind(d, version)
				p.Facts.ClusterScoped[d.Spec.Names.Kind] = d.Spec.Scope == apiextensionsv1.ClusterScoped
				p.Facts.Resources[d.Spec.Names.Kind] = d.Spec.Names.Plural
				if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
					p.Facts.Docs[d.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema.Description
				}
			}
		}
	}
	switch {
	case served[label]:
		p.Types = pkg
	case len(served) == 0:
		p.Problem = "its definitions serve no version"
	default:
		p.Problem = fmt.Sprintf("it has no definition that serves %s%s", label, others(label, slices.Sorted(maps.Keys(served))))
	}
	return p
}

// others describes what definitions serve instead of a group and version: the versions of the group
// if there are any, and otherwise a few of all.
func others(label string, served []string) string {
	group, _, _ := splitGroupVersion(label)
	of := slices.DeleteFunc(slices.Clone(served), func(other string) bool {
		g, _, _ := splitGroupVersion(other)
		return g != group
	})
	if len(of) > 0 {
		served = of
	}
	if len(served) > maxListed {
		return fmt.Sprintf(", only %s and %d more", strings.Join(served[:maxListed], ", "), len(served)-maxListed)
	}
	return ", only " + listOf(served)
}

// definitionsHint returns what to do about a problem of definitions.
func definitionsHint(problem string) string {
	switch {
	case strings.Contains(problem, "no definition that serves"):
		return "bind a version that it serves"
	case strings.Contains(problem, "serve no version"):
		return "set served of a version in spec.versions: definitions of apiextensions.k8s.io/v1beta1 are not read"
	case strings.Contains(problem, "reading http"), strings.Contains(problem, "unknown revision"), strings.Contains(problem, "dial tcp"):
		return "check the version, and that `go mod download` can download it"
	case strings.Contains(problem, "not a known dependency"):
		return "add the version that you want: MODULE@VERSION:DIRECTORY"
	}
	return "write ./FILE, ./DIRECTORY or MODULE:DIRECTORY, where CustomResourceDefinitions are"
}

// schemaTypes makes Go types of the schemas of definitions, so that a path is followed in them as in
// the types of a Go package. Their fields have the names of the JSON form, and no package, which
// [isKey] distinguishes them by.
type schemaTypes struct{ pkg *types.Package }

// isKey reports whether a field is that of a schema, and so a key of an unstructured object.
func isKey(f *types.Var) bool { return f.Pkg() == nil }

func (s *schemaTypes) addKind(d *definitions.Definition, version *apiextensionsv1.CustomResourceDefinitionVersion) {
	kind := d.Spec.Names.Kind
	properties := map[string]apiextensionsv1.JSONSchemaProps{}
	if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
		properties = maps.Clone(version.Schema.OpenAPIV3Schema.Properties)
	}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(properties, name)
	}
	// That spec need not be set is nothing to say of each reference.
	fields, tags := s.fields(kind, properties, slices.Collect(maps.Keys(properties)))
	s.pkg.Scope().Insert(named(kind, types.NewStruct(append(fields, field("metadata", metadataType)), tags)).Obj())
}

// docTag is the key of the description in the tag of a field.
const docTag = "doc"

// fields returns the fields of an object, sorted, and their tags, which have the description of a
// field, and say that it need not be set and has no default.
func (s *schemaTypes) fields(way string, properties map[string]apiextensionsv1.JSONSchemaProps, required []string) (fields []*types.Var, tags []string) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		schema, tag := properties[name], ""
		if schema.Default == nil && !slices.Contains(required, name) {
			tag = `json:",omitempty"`
		}
		if schema.Description != "" {
			tag += " " + docTag + ":" + strconv.Quote(schema.Description)
		}
		fields, tags = append(fields, field(name, s.typeOf(way+"."+name, &schema))), append(tags, tag)
	}
	return fields, tags
}

// typeOf returns the type for a schema, which is named after the way to it.
func (s *schemaTypes) typeOf(way string, schema *apiextensionsv1.JSONSchemaProps) types.Type {
	if schema.XIntOrString {
		return types.Typ[types.String]
	}
	switch schema.Type {
	case "object":
		if schema.AdditionalProperties != nil && len(schema.Properties) == 0 {
			return types.NewMap(types.Typ[types.String], types.Typ[types.String])
		}
		return named(way, types.NewStruct(s.fields(way, schema.Properties, schema.Required)))
	case "array":
		if schema.Items == nil || schema.Items.Schema == nil {
			return types.NewSlice(opaque("any"))
		}
		return types.NewSlice(s.typeOf(way+"[]", schema.Items.Schema))
	case "boolean":
		return types.Typ[types.Bool]
	case "integer":
		return types.Typ[types.Int64]
	case "string":
		if schema.Format == "date-time" {
			return opaque("date-time")
		}
		return s.text(way, schema.Enum)
	case "":
		return opaque("any")
	}
	return opaque(schema.Type)
}

// text returns the type of a text, with a constant for each value that it can have.
func (s *schemaTypes) text(way string, enum []apiextensionsv1.JSON) types.Type {
	if len(enum) == 0 {
		return types.Typ[types.String]
	}
	t := types.NewNamed(types.NewTypeName(token.NoPos, s.pkg, way, nil), types.Typ[types.String], nil)
	for _, value := range enum {
		var text *string // nil for null, which is no text
		if json.Unmarshal(value.Raw, &text) == nil && text != nil {
			s.pkg.Scope().Insert(types.NewConst(token.NoPos, s.pkg, way+"="+*text, t, constant.MakeString(*text)))
		}
	}
	return t
}

func field(name string, t types.Type) *types.Var {
	return types.NewField(token.NoPos, nil, name, t, false)
}

func named(name string, underlying types.Type) *types.Named {
	return types.NewNamed(types.NewTypeName(token.NoPos, nil, name, nil), underlying, nil)
}

// opaque is a type that cannot be text.
func opaque(name string) types.Type { return named(name, types.Typ[types.Complex128]) }

// metadataType is the type of the field metadata, which the schemas of definitions leave out.
var metadataType = named("metadata", types.NewStruct([]*types.Var{
	field("annotations", types.NewMap(types.Typ[types.String], types.Typ[types.String])),
	field("creationTimestamp", opaque("date-time")),
	field("deletionGracePeriodSeconds", types.Typ[types.Int64]),
	field("deletionTimestamp", opaque("date-time")),
	field("finalizers", types.NewSlice(types.Typ[types.String])),
	field("generateName", types.Typ[types.String]),
	field("generation", types.Typ[types.Int64]),
	field("labels", types.NewMap(types.Typ[types.String], types.Typ[types.String])),
	field("name", types.Typ[types.String]),
	field("namespace", types.Typ[types.String]),
	field("ownerReferences", types.NewSlice(named("metadata.ownerReferences[]", types.NewStruct([]*types.Var{
		field("apiVersion", types.Typ[types.String]),
		field("blockOwnerDeletion", types.Typ[types.Bool]),
		field("controller", types.Typ[types.Bool]),
		field("kind", types.Typ[types.String]),
		field("name", types.Typ[types.String]),
		field("uid", types.Typ[types.String]),
	}, nil)))),
	field("resourceVersion", types.Typ[types.String]),
	field("uid", types.Typ[types.String]),
}, nil))

// newDefinedKind returns a kind that has no Go type: its objects are unstructured.
func newDefinedKind(ref *kindRef, p *Package, obj *types.TypeName) *kindType {
	group, version, _ := splitGroupVersion(ref.label)
	return &kindType{
		Kind: model.Kind{
			Group: group, Version: version, Kind: ref.kind,
			Package: model.UnstructuredPackage, PackageName: "unstructured",
			Type: "Unstructured", List: "UnstructuredList",
			Namespaced: !p.Facts.ClusterScoped[ref.kind], Resource: p.Facts.Resources[ref.kind],
		},
		obj: obj,
	}
}
