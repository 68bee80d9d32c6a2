// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// A Yard is referred to by Barns.
type Yard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            Status `json:"status,omitempty"`
}

// A Barn stands in a Yard.
type Barn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BarnSpec `json:"spec,omitempty"`
	Status            Status   `json:"status,omitempty"`
}

type BarnSpec struct {
	Yard      string            `json:"yard,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type YardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Yard `json:"items"`
}

type BarnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Barn `json:"items"`
}

func (y *Yard) DeepCopyObject() runtime.Object {
	c := *y
	c.ObjectMeta, c.Status.Conditions = *y.ObjectMeta.DeepCopy(), slices.Clone(y.Status.Conditions)
	return &c
}

func (b *Barn) DeepCopyObject() runtime.Object {
	c := *b
	c.ObjectMeta, c.Status.Conditions = *b.ObjectMeta.DeepCopy(), slices.Clone(b.Status.Conditions)
	c.Spec.Labels = maps.Clone(b.Spec.Labels)
	return &c
}

func (l *YardList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Yard))
	}
	return &c
}

func (l *BarnList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Barn))
	}
	return &c
}

var version = schema.GroupVersion{Group: "test.example.com", Version: "v1"}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(version, &Yard{}, &YardList{}, &Barn{}, &BarnList{})
	metav1.AddToGroupVersion(s, version)
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// definitions are those of the kinds.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	var all []*apiextensionsv1.CustomResourceDefinition
	for plural, kind := range map[string]string{"yards": "Yard", "barns": "Barn"} {
		all = append(all, &apiextensionsv1.CustomResourceDefinition{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: plural + "." + version.Group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: version.Group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: plural[:4], Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
					}},
				}},
			},
		})
	}
	return all
}

// definitionFiles writes the definitions to files.
func definitionFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, d := range definitions() {
		data, err := yaml.Marshal(d)
		file := filepath.Join(t.TempDir(), d.Name+".yaml")
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

func yard(name string, labels ...string) *Yard {
	obj := &Yard{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&obj.ObjectMeta, labels[i], labels[i+1])
	}
	return obj
}

func barn(name string, spec BarnSpec) *Barn {
	return &Barn{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}
