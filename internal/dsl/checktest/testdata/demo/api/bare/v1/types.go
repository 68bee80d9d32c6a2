// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 is how a package looks before controller-gen has run on it.
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Database would be a kind if it could be copied.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DatabaseList would be its list.
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}

// DatabaseSpec is no kind at all.
type DatabaseSpec struct{}
