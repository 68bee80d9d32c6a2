// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The scheme builder of controller-runtime is what most projects have.

// Package v1 is the API of the CronJob example: as much of it as the example's code mentions.
//
// +kubebuilder:object:generate=true
// +groupName=controller-kit-demo
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "controller-kit-demo", Version: "v1"}

// AddToScheme adds the API to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &CronJob{}, &CronJobList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// A CronJob runs Jobs on a schedule.
//
// +kubebuilder:object:root=true
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CronJobSpec `json:"spec,omitempty"`
}

// CronJobSpec is what is wanted.
type CronJobSpec struct {
	Schedule string `json:"schedule,omitempty"`
	Suspend  *bool  `json:"suspend,omitempty"`
}

// CronJobList is a list of CronJobs.
//
// +kubebuilder:object:root=true
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronJob `json:"items"`
}
