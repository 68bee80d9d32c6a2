// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WebsiteSpec is the content of a site and how it is served.
type WebsiteSpec struct {
	// Host is the DNS name of the site, such as shop.example.com. It cannot be changed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the host cannot be changed: create another Website"
	Host string `json:"host"`

	// Image is the image of the web server. It serves the content in /usr/share/nginx/html on port
	// 80.
	//
	// +kubebuilder:default="nginx:1.29"
	// +optional
	Image string `json:"image,omitempty"`

	// Replicas is the number of web servers.
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
	// environment variables of the web servers. A change rolls out new Pods.
	//
	// +kubebuilder:validation:MinLength=1
	CredentialsSecret string `json:"credentialsSecret"`

	// Public makes the site reachable from outside of the cluster, with an Ingress.
	//
	// +optional
	Public bool `json:"public,omitempty"`

	// Priority is the priority of the web servers when Pods compete for room. It is limited so that
	// a Website can't evict the Pods that the cluster itself needs. Without it, they have the default
	// of the cluster.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority *int32 `json:"priority,omitempty"`
}

// WebsiteStatus is the observed state of a Website.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, PartsReady and, while Ready is not true, Reconciling or Stalled.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Website is a site that the cluster serves, with a DNS record outside of it.
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
