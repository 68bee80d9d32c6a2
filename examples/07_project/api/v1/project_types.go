// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Role is what a member may do in the Namespaces of a Project: the name of a ClusterRole that
// each cluster has.
//
// +kubebuilder:validation:Enum=view;edit;admin
type Role string

// A MemberKind is what a member is.
//
// +kubebuilder:validation:Enum=User;Group
type MemberKind string

// A Member is a user or a group with a role.
type Member struct {
	// Kind is User or Group.
	//
	// +kubebuilder:default=User
	// +optional
	Kind MemberKind `json:"kind,omitempty"`

	// Name is the name of the user or the group.
	//
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Role is what the member may do in the Namespaces of the Project.
	Role Role `json:"role"`
}

// ProjectSpec says what all Namespaces of a Project have in common.
type ProjectSpec struct {
	// Labels are put on each Namespace of the Project. That which puts a Namespace into a Project
	// can't be among them.
	//
	// +kubebuilder:validation:XValidation:rule="!self.exists(key, key == 'project.ctrlkit.dev/project')",message="this label puts a Namespace into a Project"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Members may use each Namespace of the Project.
	//
	// +listType=atomic
	// +optional
	Members []Member `json:"members,omitempty"`

	// Quota is the hard limit for each Namespace of the Project. Without it there is none.
	//
	// +optional
	Quota corev1.ResourceList `json:"quota,omitempty"`
}

// ProjectStatus is the observed state of a Project.
type ProjectStatus struct {
	// Namespaces is the number of Namespaces in the Project.
	//
	// +optional
	Namespaces int32 `json:"namespaces,omitempty"`

	// Conditions are Populated.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Project is a group of Namespaces with the same labels, members and quota.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=projects,scope=Cluster,categories=ctrlkit
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`
// +kubebuilder:printcolumn:name="Populated",type=string,JSONPath=`.status.conditions[?(@.type=="Populated")].status`
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProjectSpec   `json:"spec,omitempty"`
	Status ProjectStatus `json:"status,omitempty"`
}

// ProjectList is a list of Projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Project `json:"items"`
}
