// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConcurrencyPolicy says what happens to a run that is due while Jobs of earlier runs are still active.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent starts the run beside those that are active. It is the default.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent lets the run wait until no Job is active any more. If more runs become due meanwhile, only
	// the latest of them is started.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the active Jobs and starts the run.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobSpec is what the user of a CronJob wants.
type CronJobSpec struct {
	// Schedule is a line of five fields as in crontab(5), a descriptor such as @hourly, or @every and a duration,
	// for example "@every 1h30m". An interval counts from the last run, or from the creation of the CronJob.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="a time zone does not belong into the schedule: use timeZone instead of TZ= or CRON_TZ="
	Schedule string `json:"schedule"`

	// TimeZone is the name of the time zone in which the schedule is read, for example "Europe/Paris". It is UTC if
	// this is not set, wherever the operator runs.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self != 'Local'",message="Local is the time zone of whichever machine the operator runs on: name the zone, for example Europe/Paris"
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// StartingDeadlineSeconds is how late a run may start. A run that could not start in time is missed and is
	// not made up. Without it, the latest run that was missed is always made up.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// ConcurrencyPolicy says what happens to a run that is due while Jobs of earlier runs are still active.
	//
	// +kubebuilder:default=Allow
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Suspend stops further runs while it is true. Jobs that are active go on, and when it becomes false again, the
	// latest run that was missed meanwhile is made up, if the starting deadline allows.
	//
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// JobTemplate is what the Jobs look like. A change has no effect on Jobs that exist.
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

// CronJobStatus is what the operator has seen and done.
type CronJobStatus struct {
	// Active are the Jobs that have not finished, in the order of their names.
	//
	// +listType=atomic
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// LastScheduleTime is the time in the schedule of the latest run that was started. It never goes back, and a run
	// that it covers is not started again, even if its Job was deleted.
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
	// ConditionScheduled is true while runs are started as the schedule wants, also if there is nothing to do because
	// the CronJob is suspended. If it is false, its message says what a person must change, and the CronJob is not Ready.
	ConditionScheduled = "Scheduled"
	// ConditionMissedRuns is true if runs were missed and not made up before the latest run that was due.
	ConditionMissedRuns = "MissedRuns"
)

// Reasons of the condition Scheduled.
const (
	// ReasonScheduled means that the next run has a time.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended means that the user has suspended the CronJob.
	ReasonSuspended = "Suspended"
	// ReasonWaiting means that a run is due and waits, as the concurrency policy wants, for active Jobs.
	ReasonWaiting = "WaitingForActiveJobs"
	// ReasonInvalidSchedule means that the schedule cannot be read, or that it has no next time.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonInvalidTimeZone means that there is no time zone of this name.
	ReasonInvalidTimeZone = "InvalidTimeZone"
	// ReasonJobNameTaken means that an object which is not ours has the name that the Job of the run needs.
	ReasonJobNameTaken = "JobNameTaken"
	// ReasonJobNotCreated means that the API server did not accept the Job.
	ReasonJobNotCreated = "JobNotCreated"
)

// Reasons of the condition MissedRuns.
const (
	// ReasonOnSchedule means that nothing was missed.
	ReasonOnSchedule = "OnSchedule"
	// ReasonDeadlinePassed means that the latest run could not start within the starting deadline.
	ReasonDeadlinePassed = "StartingDeadlinePassed"
	// ReasonTooManyMissed means that more than 100 runs were missed; the latest of them was made up.
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
