// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionReachable is true if the administrator of a Server can log in.
const ConditionReachable = "Reachable"

// TLSMode says whether connections to a server are encrypted.
//
// +kubebuilder:validation:Enum=Preferred;Required;Disabled
type TLSMode string

// The modes. With TLSRequired the certificate of the server is verified, too.
const (
	TLSPreferred TLSMode = "Preferred"
	TLSRequired  TLSMode = "Required"
	TLSDisabled  TLSMode = "Disabled"
)

// ServerSpec is where a MySQL or MariaDB server is, and who administers it.
//
// +kubebuilder:validation:XValidation:rule="has(self.address) != (has(self.embedded) && self.embedded)",message="give either the address of a server, or embedded: true"
type ServerSpec struct {
	// Address is the host and port of the server, such as db.example.com:3306.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=300
	// +optional
	Address string `json:"address,omitempty"`

	// Embedded is for the server that the operator itself runs, for demonstrations.
	//
	// +optional
	Embedded bool `json:"embedded,omitempty"`

	// CredentialsSecret is the name of a Secret in the namespace of the Server. Its keys username
	// and password are those of an account that may create users and pass privileges on.
	//
	// +kubebuilder:validation:MinLength=1
	CredentialsSecret string `json:"credentialsSecret"`

	// TLS says whether connections are encrypted.
	//
	// +kubebuilder:default=Preferred
	// +optional
	TLS TLSMode `json:"tls,omitempty"`
}

// ServerStatus is the observed state of a Server.
type ServerStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Address is the host and port of the server.
	//
	// +optional
	Address string `json:"address,omitempty"`

	// Version is what the server reports as its version.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Conditions are Ready, Reachable and, while Ready is not true, Reconciling or Stalled.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Server is a MySQL or MariaDB server.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=servers,categories=ctrlkit
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServerSpec   `json:"spec"`
	Status ServerStatus `json:"status,omitempty"`
}

// ServerList is a list of Servers.
//
// +kubebuilder:object:root=true
type ServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Server `json:"items"`
}
