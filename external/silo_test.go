// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/policy"
)

// A Silo is the object of the tests of single reconciles.
type Silo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiloSpec   `json:"spec,omitempty"`
	Status            SiloStatus `json:"status,omitempty"`
}

type SiloSpec struct {
	Size   string `json:"size,omitempty"`
	Region string `json:"region,omitempty"` // the system chooses one
}

type SiloStatus struct {
	policy.RequestStatus `json:",inline"`
	ObservedGeneration   int64              `json:"observedGeneration,omitempty"`
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
}

func (b *Silo) DeepCopyObject() runtime.Object {
	c := *b
	c.ObjectMeta = *b.ObjectMeta.DeepCopy()
	c.Status.Conditions = slices.Clone(b.Status.Conditions)
	return &c
}

type SiloList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Silo `json:"items"`
}

func (l *SiloList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Silo))
	}
	return &c
}

var siloVersion = schema.GroupVersion{Group: "test.example.com", Version: "v1"}

func siloScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(siloVersion, &Silo{}, &SiloList{})
	metav1.AddToGroupVersion(s, siloVersion)
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// siloDefinition is that of Silos.
func siloDefinition() *apiextensionsv1.CustomResourceDefinition {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "silos." + siloVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: siloVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "silos", Singular: "silo", Kind: "Silo", ListKind: "SiloList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}
