// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

// Conditions of a User besides those that every object has.
const (
	// ConditionServerFound is true if the Server and its credentials exist.
	ConditionServerFound = "ServerFound"

	// ConditionInSync is true if the server has the accounts and the grants that the User wants.
	ConditionInSync = "InSync"
)

// AccountAnnotation has the name that the accounts of a User begin with. It is written before the
// first account is made.
const AccountAnnotation = "mysql.ctrlkit.dev/account"

// UserSpec is a user of a MySQL server.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretName) == has(oldSelf.secretName)",message="the name of the Secret cannot be changed: create another User"
type UserSpec struct {
	// Server is the name of a Server in the namespace of the User. It cannot be changed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the server cannot be changed: create another User"
	Server string `json:"server"`

	// Name begins the names of the accounts on the server. What follows it makes them unique. It
	// cannot be changed.
	//
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]*$`
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the name cannot be changed: create another User"
	Name string `json:"name"`

	// Grants are all that the user may do. What it may do beyond that is revoked.
	//
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Grants []Grant `json:"grants,omitempty"`

	// PasswordGeneration requests another password when it is changed.
	//
	// +kubebuilder:default=1
	// +optional
	PasswordGeneration int64 `json:"passwordGeneration,omitempty"`

	// Overlap is how long the old password works after the new one was published: the time that
	// the slowest client has to read the Secret again.
	//
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="the overlap cannot be negative"
	// +optional
	Overlap *metav1.Duration `json:"overlap,omitempty"`

	// SecretName is the name of the Secret with host, port, username and password; by default that
	// of the User and "-mysql". It cannot be changed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the name of the Secret cannot be changed: create another User"
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// A Privilege is one that MySQL and MariaDB know for a database or a table.
//
// +kubebuilder:validation:Enum=SELECT;INSERT;UPDATE;DELETE;CREATE;DROP;REFERENCES;INDEX;ALTER;CREATE TEMPORARY TABLES;LOCK TABLES;EXECUTE;CREATE VIEW;SHOW VIEW;CREATE ROUTINE;ALTER ROUTINE;EVENT;TRIGGER
type Privilege string

// Grant is what a user may do with a database or a table.
type Grant struct {
	// Privileges are what it may do.
	//
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	Privileges []Privilege `json:"privileges"`

	// Database is the name of a database. There are no wildcards.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_$-]+$`
	// +kubebuilder:validation:MaxLength=64
	Database string `json:"database"`

	// Table is the name of a table of the database; without it, the grant is for all of them.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_$-]+$`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Table string `json:"table,omitempty"`
}

// UserStatus is the observed state of a User.
type UserStatus struct {
	policy.RequestStatus `json:",inline"`

	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Username is the account whose password the Secret has.
	//
	// +optional
	Username string `json:"username,omitempty"`

	// PasswordGeneration is that of the password in the Secret.
	//
	// +optional
	PasswordGeneration int64 `json:"passwordGeneration,omitempty"`

	// Accounts are those that the server has. There are two while an old password still works.
	//
	// +optional
	Accounts []string `json:"accounts,omitempty"`

	// Conditions are Ready, ServerReady, ServerFound, InSync, Managed and, while Ready is not true, Reconciling
	// or Stalled.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// User is a user of a MySQL server, with a Secret that has its password.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=users,categories=ctrlkit
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Username",type=string,JSONPath=`.status.username`
// +kubebuilder:printcolumn:name="Password",type=integer,JSONPath=`.status.passwordGeneration`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type User struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   UserSpec   `json:"spec"`
	Status UserStatus `json:"status,omitempty"`
}

// UserList is a list of Users.
//
// +kubebuilder:object:root=true
type UserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []User `json:"items"`
}
