// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 is an API for tests. There are two packages of which the path ends like this one's.
//
// +kubebuilder:object:generate=true
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Depot is a kind.
//
// +kubebuilder:object:root=true
type Depot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DepotList is a list of Depots.
//
// +kubebuilder:object:root=true
type DepotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Depot `json:"items"`
}
