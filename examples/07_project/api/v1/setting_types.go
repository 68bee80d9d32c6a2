// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A SettingState says whether a feature is on.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type SettingState string

// The states of features.
const (
	SettingEnabled  SettingState = "Enabled"
	SettingDisabled SettingState = "Disabled"
)

// SettingSpec is the value of a Setting.
type SettingSpec struct {
	// State says whether the feature is on.
	//
	// +kubebuilder:default=Enabled
	// +optional
	State SettingState `json:"state,omitempty"`
}

// Setting switches the feature of its name on and off: quota or labels. A feature without a Setting
// is off.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=settings,scope=Cluster,categories=ctrlkit
// +kubebuilder:validation:XValidation:rule="self.metadata.name in ['quota', 'labels']",message="there are two features: quota and labels"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
type Setting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SettingSpec `json:"spec,omitempty"`
}

// SettingList is a list of Settings.
//
// +kubebuilder:object:root=true
type SettingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Setting `json:"items"`
}
