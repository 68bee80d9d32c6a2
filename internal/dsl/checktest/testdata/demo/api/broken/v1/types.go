// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has a good kind beside a mistake.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Database is a kind.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Size              Bytes `json:"size,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (d *Database) DeepCopyObject() runtime.Object { c := *d; return &c }

// DatabaseList is a list of Databases.
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *DatabaseList) DeepCopyObject() runtime.Object { c := *l; return &c }
