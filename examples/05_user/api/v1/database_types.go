// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

// ConditionServerReady is true if the Server of a Database can be used.
const ConditionServerReady = "ServerReady"

// DatabaseSpec is a database of a MySQL or MariaDB server.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name)",message="the name cannot be added or removed: create another Database"
type DatabaseSpec struct {
	// Server is the name of a Server in the namespace of the Database. It cannot be changed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the server cannot be changed: create another Database"
	Server string `json:"server"`

	// Name is the name of the database. Without it, the name is made from the UID of the object. It
	// cannot be changed.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_$-]+$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the name cannot be changed: create another Database"
	// +optional
	Name string `json:"name,omitempty"`

	// CharacterSet is that of new tables, such as utf8mb4. Without it, that of the database is left,
	// and copied here.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	CharacterSet string `json:"characterSet,omitempty"`

	// Collation is that of new tables, such as utf8mb4_bin. Without it, that of the database is left,
	// and copied here.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9_]+$`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Collation string `json:"collation,omitempty"`
}

// DatabaseStatus is the observed state of a Database.
type DatabaseStatus struct {
	policy.RequestStatus `json:",inline"`

	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Address is the address of the server that has the database.
	//
	// +optional
	Address string `json:"address,omitempty"`

	// Database is the name of the database on the server.
	//
	// +optional
	Database string `json:"database,omitempty"`

	// Conditions are Ready, ServerReady, those of package external and, while Ready is not true,
	// Reconciling or Stalled.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Database is a database of a MySQL or MariaDB server. It is dropped with the object once it has no
// tables.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=databases,categories=ctrlkit
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Database",type=string,JSONPath=`.status.database`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseList is a list of Databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}
