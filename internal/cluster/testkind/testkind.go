// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package testkind has custom kinds for tests: Go types, schemes and definitions that accept
// anything.
//
//	type Yard = testkind.Object[YardSpec, testkind.Status]
//
//	var yards = testkind.Of[YardSpec, testkind.Status]("Yard")
//
//	scheme := testkind.Scheme(yards)
//	err := server.Install(yards.Definition())
package testkind

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Version is that of all kinds.
var Version = schema.GroupVersion{Group: "test.example.com", Version: "v1"}

// An Object is one of a kind with this spec and status.
type Object[Spec, State any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec  `json:"spec,omitempty"`
	Status            State `json:"status,omitempty"`
}

// A List is one of such objects.
type List[Spec, State any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Object[Spec, State] `json:"items"`
}

// A Status is what most kinds have.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (o *Object[Spec, State]) DeepCopyObject() runtime.Object { return copied(o) }

// DeepCopyObject implements [runtime.Object].
func (l *List[Spec, State]) DeepCopyObject() runtime.Object { return copied(l) }

// copied copies by JSON, which is slow and never wrong.
func copied[T any](from *T) *T {
	data, err := json.Marshal(from)
	to := new(T)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

// A Kind is a namespaced kind whose plural has an s.
type Kind struct {
	name     string
	register func(*runtime.Scheme)
}

// Of returns the kind of Objects with this spec and status.
func Of[Spec, State any](name string) Kind {
	return Kind{name, func(s *runtime.Scheme) {
		s.AddKnownTypeWithName(Version.WithKind(name), &Object[Spec, State]{})
		s.AddKnownTypeWithName(Version.WithKind(name+"List"), &List[Spec, State]{})
	}}
}

// Scheme returns a scheme with the kinds of Kubernetes, and these.
func Scheme(kinds ...Kind) *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	for _, k := range kinds {
		k.register(s)
	}
	metav1.AddToGroupVersion(s, Version)
	return s
}

// Definition returns one with a status and any fields in it and in the spec.
func (k Kind) Definition() *apiextensionsv1.CustomResourceDefinition {
	singular, anything := strings.ToLower(k.name), apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + Version.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Version.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: k.name, ListKind: k.name + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: Version.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}

// Files returns files with the definitions of kinds, which are removed after the test.
func Files(t testing.TB, kinds ...Kind) (files []string) {
	t.Helper()
	for _, k := range kinds {
		data, err := yaml.Marshal(k.Definition())
		file := filepath.Join(t.TempDir(), k.name+".yaml")
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
