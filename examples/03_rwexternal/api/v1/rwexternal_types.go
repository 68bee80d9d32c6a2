// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RWExternalSpec names the Secrets of the numbers and of the result.
//
// +kubebuilder:validation:XValidation:rule="has(self.outputSecret) == has(oldSelf.outputSecret) && (!has(self.outputSecret) || self.outputSecret == oldSelf.outputSecret)",message="the output cannot be changed: create another RWExternal"
type RWExternalSpec struct {
	// InputSecret is the name of a Secret in the namespace of the RWExternal, with the keys
	// "dividend" and "divisor".
	//
	// +kubebuilder:validation:MinLength=1
	InputSecret string `json:"inputSecret"`

	// OutputSecret is the Secret with the result. It is deleted with the RWExternal. An existing
	// Secret of another owner is not overwritten. The field cannot be changed. The default is the
	// namespace of the RWExternal and its name followed by "-output".
	//
	// +optional
	OutputSecret SecretReference `json:"outputSecret,omitzero"`
}

// SecretReference names a Secret of any namespace.
type SecretReference struct {
	// Namespace is the namespace of the Secret. The default is that of the RWExternal.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the Secret. The default is that of the RWExternal followed by "-output".
	//
	// +optional
	Name string `json:"name,omitempty"`
}

// RWExternalStatus is the observed state of an RWExternal.
type RWExternalStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// OutputSecret is the Secret to which the result was written last.
	//
	// +optional
	OutputSecret *SecretReference `json:"outputSecret,omitempty"`

	// Conditions are Ready, InputReady and OutputReady.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

const (
	// ConditionInputReady is true if the input Secret exists and has two numbers.
	ConditionInputReady = "InputReady"
	// ConditionOutputReady is true if the output Secret has their quotient.
	ConditionOutputReady = "OutputReady"
)

// RWExternal divides the numbers of one Secret and writes the result to another.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rwexternals,categories=ctrlkit
// +kubebuilder:printcolumn:name="Input",type=string,JSONPath=`.spec.inputSecret`
// +kubebuilder:printcolumn:name="Output",type=string,JSONPath=`.status.outputSecret.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type RWExternal struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RWExternalSpec   `json:"spec"`
	Status RWExternalStatus `json:"status,omitempty"`
}

// RWExternalList is a list of RWExternals.
//
// +kubebuilder:object:root=true
type RWExternalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RWExternal `json:"items"`
}
