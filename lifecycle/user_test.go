// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/policy"
)

// A User is the object that the tests reconcile: a user of a database.
type User struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              UserSpec   `json:"spec,omitempty"`
	Status            UserStatus `json:"status,omitempty"`
}

type UserSpec struct {
	Name   string `json:"name,omitempty"`
	Server string `json:"server,omitempty"` // the ConfigMap of the server, if it has one
}

type UserStatus struct {
	policy.RequestStatus `json:",inline"`
	Observed             string             `json:"observed,omitempty"`
	ObservedGeneration   int64              `json:"observedGeneration,omitempty"`
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
}

func (u *User) DeepCopyObject() runtime.Object {
	c := *u
	c.ObjectMeta = *u.ObjectMeta.DeepCopy()
	c.Status.Conditions = slices.Clone(u.Status.Conditions)
	return &c
}

type UserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []User `json:"items"`
}

func (l *UserList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*User))
	}
	return &c
}

const (
	// finalizer is what an engine of the name "users" puts on a User.
	finalizer = "test.example.com/users"
	// claimed is the annotation that Claim writes.
	claimed = "test.example.com/login"
)

var userVersion = schema.GroupVersion{Group: "test.example.com", Version: "v1"}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(userVersion, &User{}, &UserList{}, &Server{}, &ServerList{})
	metav1.AddToGroupVersion(s, userVersion)
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// definition is that of Users.
func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "users." + userVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: userVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "users", Singular: "user", Kind: "User", ListKind: "UserList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec":   {Type: "object", XPreserveUnknownFields: new(true)},
						"status": {Type: "object", XPreserveUnknownFields: new(true)},
					},
				}},
			}},
		},
	}
}

// user returns one that is called "namespace/name".
func user(namespace, name string) *User {
	return &User{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: UserSpec{Name: "app"}}
}
