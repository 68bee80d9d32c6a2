// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet has a custom resource of a usual size: its schema contains the template of a Job,
// and with it that of a Pod. The simulator measures itself with it.
//
// +kubebuilder:object:generate=true
// +groupName=bench.ctrlkit.dev
// +versionName=v1
package fleet

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate controller-gen object crd:maxDescLen=0 paths=. output:crd:dir=crd

// GroupVersion is the version of the kinds of this package.
var GroupVersion = schema.GroupVersion{Group: "bench.ctrlkit.dev", Version: "v1"}

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Fleet{}, &FleetList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// A Fleet is a set of Jobs that run together.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FleetSpec   `json:"spec,omitempty"`
	Status FleetStatus `json:"status,omitempty"`
}

// FleetSpec is what a Fleet should be.
//
// +kubebuilder:validation:XValidation:rule="size(self.groups) > 0",message="a fleet has groups"
type FleetSpec struct {
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="size(self) <= size(oldSelf)",message="groups can't be added"
	Groups []Group `json:"groups,omitempty"`

	// +kubebuilder:default=true
	// +optional
	EnableDNS *bool `json:"enableDNS,omitempty"`

	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// A Group is a Job and how often it runs.
type Group struct {
	Name string `json:"name"`

	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	Template batchv1.JobTemplateSpec `json:"template"`
}

// FleetStatus is what a Fleet is.
type FleetStatus struct {
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupStatus `json:"groups,omitempty"`
}

// GroupStatus counts the Jobs of a group.
type GroupStatus struct {
	Name      string `json:"name"`
	Active    int32  `json:"active"`
	Ready     int32  `json:"ready"`
	Succeeded int32  `json:"succeeded"`
	Failed    int32  `json:"failed"`
}

// FleetList is a list of Fleets.
//
// +kubebuilder:object:root=true
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Fleet `json:"items"`
}
