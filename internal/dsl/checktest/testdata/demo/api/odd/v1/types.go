// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has kinds that are almost right.
//
// +groupName=odd.example.com
// +versionName=v1
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NamedItems are the items of a NamedList.
type NamedItems []Named

// common is inlined although it is not exported.
type common struct {
	Zone string `json:"zone,omitempty"`
}

// Derived embeds a kind.
type Derived struct {
	Named `json:",inline"`
}

// Plain has no TypeMeta.
type Plain struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DeepCopyObject is there, but the type is no runtime.Object.
func (p *Plain) DeepCopyObject() runtime.Object { return nil }

// Pointed is a kind: its list holds pointers.
type Pointed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		common `json:",inline"`
	} `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (o *Pointed) DeepCopyObject() runtime.Object { c := *o; return &c }

// PointedList is its list.
type PointedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []*Pointed `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *PointedList) DeepCopyObject() runtime.Object { c := *l; return &c }

// Foreign is a kind: its list holds something else.
type Foreign struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		common `json:",inline"`
	} `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (o *Foreign) DeepCopyObject() runtime.Object { c := *o; return &c }

// ForeignList is its list.
type ForeignList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []string `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *ForeignList) DeepCopyObject() runtime.Object { c := *l; return &c }

// Single is a kind: its list holds one.
type Single struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		common `json:",inline"`
	} `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (o *Single) DeepCopyObject() runtime.Object { c := *o; return &c }

// SingleList is its list.
type SingleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           Single `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *SingleList) DeepCopyObject() runtime.Object { c := *l; return &c }

// Itemless is a kind: its list holds nothing.
type Itemless struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		common `json:",inline"`
	} `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (o *Itemless) DeepCopyObject() runtime.Object { c := *o; return &c }

// ItemlessList is its list.
type ItemlessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (l *ItemlessList) DeepCopyObject() runtime.Object { c := *l; return &c }

// Bare is a kind: its list is a slice.
type Bare struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		common `json:",inline"`
	} `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (o *Bare) DeepCopyObject() runtime.Object { c := *o; return &c }

// BareList is its list.
type BareList []Bare

// Named is a kind: its list holds a slice with a name, which is as good.
type Named struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		common `json:",inline"`
	} `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (o *Named) DeepCopyObject() runtime.Object { c := *o; return &c }

// NamedList is its list.
type NamedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           NamedItems `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *NamedList) DeepCopyObject() runtime.Object { c := *l; return &c }
