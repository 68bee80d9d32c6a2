// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ConcurrencyPolicy says what happens to a run that would begin while another one is active.
type ConcurrencyPolicy string

// The policies.
const (
	AllowConcurrent   ConcurrencyPolicy = "Allow"
	ForbidConcurrent  ConcurrencyPolicy = "Forbid"
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobSpec is what is wanted.
type CronJobSpec struct {
	Schedule                string            `json:"schedule"`
	StartingDeadlineSeconds *int64            `json:"startingDeadlineSeconds,omitempty"`
	ConcurrencyPolicy       ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	Suspend                 *bool             `json:"suspend,omitempty"`
	Template                *JobTemplate      `json:"template,omitempty"`
}

// JobTemplate names what Jobs are made from.
type JobTemplate struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// CronJobStatus is what was seen.
type CronJobStatus struct {
	Active           []corev1.ObjectReference `json:"active,omitempty"`
	LastScheduleTime *metav1.Time             `json:"lastScheduleTime,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// CronJob runs Jobs by the clock.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronJobSpec   `json:"spec,omitempty"`
	Status CronJobStatus `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object; this copy is shallow, for nothing runs here.
func (c *CronJob) DeepCopyObject() runtime.Object { d := *c; return &d }

// +kubebuilder:object:root=true

// CronJobList is a list of CronJobs.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronJob `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *CronJobList) DeepCopyObject() runtime.Object { d := *l; return &d }
