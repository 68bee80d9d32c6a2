// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has a cluster-scoped kind and one without a list.
//
// +groupName=cluster.example.com
// +versionName=v1
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tenants,scope=Cluster,shortName=tn

// Tenant is a part of the cluster.
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TenantSpec `json:"spec,omitempty"`
}

// TenantSpec is what is wanted.
type TenantSpec struct {
	Namespace string `json:"namespace,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (t *Tenant) DeepCopyObject() runtime.Object { c := *t; return &c }

// TenantList is a list of Tenants.
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *TenantList) DeepCopyObject() runtime.Object { c := *l; return &c }

// Single is a kind without a list type.
type Single struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *Single) DeepCopyObject() runtime.Object { c := *s; return &c }
