// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The scheme builder of controller-runtime is what most projects have.

package golden

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "shop.example.com", Version: "v1"}

// AddToScheme adds the API to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Shop{}, &ShopList{}, &Region{}, &RegionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// A Tier is a named string.
type Tier string

// Level is a named integer.
type Level int32

// Flag is a named boolean.
type Flag bool

// A Shop is namespaced.
//
// +kubebuilder:object:root=true
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// Spec is the specification of both kinds.
type Spec struct {
	SecretName string `json:"secretName,omitempty"`
	Place      string `json:"place,omitempty"`
	Group      string `json:"group,omitempty"`
	Tier       Tier   `json:"tier,omitempty"`
	TierRef    *Tier  `json:"tierRef,omitempty"`
	Level      Level  `json:"level,omitempty"`
	Size       uint16 `json:"size,omitempty"`
	Replicas   *int32 `json:"replicas,omitempty"`
	Open       bool   `json:"open,omitempty"`
	Flag       *Flag  `json:"flag,omitempty"`
	Hours      Hours  `json:"hours,omitempty,omitzero"`
	Ref        *Ref   `json:"ref,omitempty"`
}

// Hours say when a shop is open.
type Hours struct {
	From int32 `json:"from,omitempty"`
	To   int32 `json:"to,omitempty"`
}

// String returns the hours as the text 8-20.
func (h Hours) String() string { return fmt.Sprintf("%d-%d", h.From, h.To) }

// Ref refers to an object.
type Ref struct {
	Name      string  `json:"name,omitempty"`
	Namespace *string `json:"namespace,omitempty"`
	Next      *Next   `json:"next,omitempty"`
}

// Next is what a Ref leads to.
type Next struct {
	Name string `json:"name,omitempty"`
}

// ShopList is a list of Shops.
//
// +kubebuilder:object:root=true
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}

// A Region is cluster-scoped.
//
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:object:root=true
type Region struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// RegionList is a list of Regions.
//
// +kubebuilder:object:root=true
type RegionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Region `json:"items"`
}
