// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SimpleSpec is a division.
type SimpleSpec struct {
	// Dividend is the number to divide.
	Dividend int64 `json:"dividend"`

	// Divisor is the number to divide by. Zero is accepted, and reported in the condition
	// DivisorNonZero.
	Divisor int64 `json:"divisor"`
}

// SimpleStatus is the result of the division.
type SimpleStatus struct {
	// ObservedGeneration is the generation of the spec that the result belongs to.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Quotient and Remainder are the result. There is none while the divisor is zero.
	//
	// +optional
	Quotient *int64 `json:"quotient,omitempty"`
	// +optional
	Remainder *int64 `json:"remainder,omitempty"`

	// Conditions are Ready and DivisorNonZero.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionDivisorNonZero is true if the divisor is not zero.
const ConditionDivisorNonZero = "DivisorNonZero"

// Simple divides two numbers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=ctrlkit
// +kubebuilder:printcolumn:name="Dividend",type=integer,JSONPath=`.spec.dividend`
// +kubebuilder:printcolumn:name="Divisor",type=integer,JSONPath=`.spec.divisor`
// +kubebuilder:printcolumn:name="Quotient",type=integer,JSONPath=`.status.quotient`
// +kubebuilder:printcolumn:name="Remainder",type=integer,JSONPath=`.status.remainder`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type Simple struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SimpleSpec   `json:"spec"`
	Status SimpleStatus `json:"status,omitempty"`
}

// SimpleList is a list of Simples.
//
// +kubebuilder:object:root=true
type SimpleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Simple `json:"items"`
}
