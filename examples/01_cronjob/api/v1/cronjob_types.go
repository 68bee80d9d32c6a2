// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConcurrencyPolicy says what happens to a run that is due while Jobs of earlier runs are still
// active.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent starts the run in addition to the active ones. It is the default.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent delays the run until no Job is active. If more runs become due in the
	// meantime, only the latest of them is started.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the active Jobs and starts the run.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobSpec is the desired state of a CronJob.
type CronJobSpec struct {
	// Schedule is a line of five fields as in crontab(5), a descriptor such as @hourly, or @every
	// and a duration, for example "@every 1h30m". An interval counts from the last run, or from the
	// creation of the CronJob.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="the schedule must not contain a time zone: use timeZone instead of TZ= or CRON_TZ="
	Schedule string `json:"schedule"`

	// TimeZone is the name of the schedule's time zone, for example "Europe/Paris". The default is
	// UTC, wherever the operator runs.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self != 'Local'",message="Local depends on the operator's machine: name a zone, for example Europe/Paris"
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// StartingDeadlineSeconds is how late a run may start. A run that could not start in time is
	// missed. Without it, the latest missed run is always started.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// ConcurrencyPolicy says what happens to a run that is due while Jobs of earlier runs are still
	// active.
	//
	// +kubebuilder:default=Allow
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Suspend stops further runs while it is true. Active Jobs continue. When it becomes false
	// again, the latest missed run is started, if the starting deadline allows.
	//
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// JobTemplate is the template of the Jobs. A change has no effect on existing Jobs.
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`

	// SuccessfulJobsHistoryLimit is how many completed Jobs are kept.
	//
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// FailedJobsHistoryLimit is how many failed Jobs are kept.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// Suspended reports whether the user has suspended the CronJob.
func (s *CronJobSpec) Suspended() bool { return s.Suspend != nil && *s.Suspend }

// CronJobStatus is the observed state of a CronJob.
type CronJobStatus struct {
	// Active are the Jobs that have not finished, in the order of their names.
	//
	// +listType=atomic
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// LastScheduleTime is the time in the schedule of the latest run that was started. It never
	// goes back, and a run that it covers is not started again, even if its Job was deleted.
	//
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// Conditions are Ready, Scheduled and MissedRuns.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

const (
	// ConditionScheduled is true while runs are started according to the schedule, and while the
	// CronJob is suspended. If it is false, its message has the remedy, and the CronJob is not
	// Ready.
	ConditionScheduled = "Scheduled"
	// ConditionMissedRuns is true if runs before the latest one were missed.
	ConditionMissedRuns = "MissedRuns"
)

// Reasons of the condition Scheduled.
const (
	// ReasonScheduled means that the next run has a time.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended means that the user has suspended the CronJob.
	ReasonSuspended = "Suspended"
	// ReasonWaiting means that a run is due and waits for active Jobs, because the concurrency
	// policy is Forbid.
	ReasonWaiting = "WaitingForActiveJobs"
	// ReasonInvalidSchedule means that the schedule cannot be read, or that it has no next time.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonInvalidTimeZone means that the time zone is unknown.
	ReasonInvalidTimeZone = "InvalidTimeZone"
	// ReasonJobNameTaken means that a Job of another owner has the name of the run's Job.
	ReasonJobNameTaken = "JobNameTaken"
	// ReasonJobNotCreated means that the API server did not accept the Job.
	ReasonJobNotCreated = "JobNotCreated"
)

// Reasons of the condition MissedRuns.
const (
	// ReasonOnSchedule means that no runs were missed.
	ReasonOnSchedule = "OnSchedule"
	// ReasonDeadlinePassed means that the latest run could not start within the starting deadline.
	ReasonDeadlinePassed = "StartingDeadlinePassed"
	// ReasonTooManyMissed means that more than 100 runs were missed; the latest of them was
	// started.
	ReasonTooManyMissed = "TooManyMissedRuns"
)

// CronJob starts a Job at each time of a schedule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ccj,categories=ctrlkit
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].reason`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.active[*].name`
// +kubebuilder:printcolumn:name="Last Schedule",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="the name may have at most 52 characters: the names of the Jobs add 11 to it, and a Job may have 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name must be a DNS label (lower case letters, digits and '-', no dots): the names of Jobs and the host names of their Pods begin with it"
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronJobSpec   `json:"spec"`
	Status CronJobStatus `json:"status,omitempty"`
}

// CronJobList is a list of CronJobs.
//
// +kubebuilder:object:root=true
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CronJob `json:"items"`
}
