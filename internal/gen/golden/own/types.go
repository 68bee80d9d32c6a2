// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package own holds an API and, in the same package, the manager that is generated for it.
//
// +kubebuilder:object:generate=true
package own

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Thing is a kind.
//
// +kubebuilder:object:root=true
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// ThingList is a list of Things.
//
// +kubebuilder:object:root=true
type ThingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Thing `json:"items"`
}
