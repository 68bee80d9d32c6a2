// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WebsiteSpec says what a site shows, and where.
type WebsiteSpec struct {
	// Host is the name under which the site is found, such as shop.example.com. It can't be
	// changed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the host can't be changed: make another Website"
	Host string `json:"host"`

	// Image is the web server. It finds the content in /usr/share/nginx/html and listens on port
	// 80.
	//
	// +kubebuilder:default="nginx:1.29"
	// +optional
	Image string `json:"image,omitempty"`

	// Replicas is how many web servers there are.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Content is the files of the site, by name.
	//
	// +optional
	Content map[string]string `json:"content,omitempty"`

	// CredentialsSecret is the name of a Secret in the namespace of the Website. Its keys are
	// environment variables of the web servers, which are rolled when it changes.
	//
	// +kubebuilder:validation:MinLength=1
	CredentialsSecret string `json:"credentialsSecret"`
}

// WebsiteStatus is what the operator has seen and done.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, and Reconciling or Stalled while it is not.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Website is a site that is served from the cluster and has a DNS record outside of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=websites,categories=ctrlkit
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec   `json:"spec"`
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteList is a list of Websites.
//
// +kubebuilder:object:root=true
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}
