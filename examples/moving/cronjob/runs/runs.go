// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package runs is what the stages have in common: which Jobs a CronJob has, which of them are too
// many, when the next one is due, and from stage steps on what the conditions say.
package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// OwnerField is the index of Jobs by the name of the CronJob that controls them.
const OwnerField = ".metadata.controller"

// OwnerOf returns the values of a Job for the index.
func OwnerOf(job client.Object) []string {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.APIVersion != v1.GroupVersion.String() || owner.Kind != "CronJob" {
		return nil
	}
	return []string{owner.Name}
}

// atAnnotation is the time of the schedule for which a Job was created.
const atAnnotation = "batch.ctrlkit.dev/scheduled-at"

// New returns the Job for a time of the schedule. Its name has that time, so that a run has one Job.
func New(cronJob *v1.CronJob, at time.Time) *batchv1.Job {
	template := cronJob.Spec.JobTemplate.DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, template.Annotations)
	annotations[atAnnotation] = at.UTC().Format(time.RFC3339)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cronJob.Namespace, Name: fmt.Sprintf("%s-%d", cronJob.Name, at.Unix()),
			Labels: template.Labels, Annotations: annotations,
		},
		Spec: template.Spec,
	}
}

// Jobs are the Jobs of a CronJob.
type Jobs struct {
	Active, Complete, Failed []*batchv1.Job
	Last                     time.Time // the latest time of the schedule that has a Job; zero without Jobs
}

// Of sorts the Jobs of a CronJob by how they have ended.
func Of(list *batchv1.JobList) Jobs {
	var jobs Jobs
	for i := range list.Items {
		job := &list.Items[i]
		switch endOf(job) {
		case batchv1.JobComplete:
			jobs.Complete = append(jobs.Complete, job)
		case batchv1.JobFailed:
			jobs.Failed = append(jobs.Failed, job)
		default:
			jobs.Active = append(jobs.Active, job)
		}
		if at, err := time.Parse(time.RFC3339, job.Annotations[atAnnotation]); err == nil && at.After(jobs.Last) {
			jobs.Last = at
		}
	}
	return jobs
}

func endOf(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type
		}
	}
	return ""
}

// TooMany returns the oldest of the given Jobs, all but as many as the limit says. Without a limit,
// none are too many.
func TooMany(jobs []*batchv1.Job, limit *int32) []*batchv1.Job {
	if limit == nil || len(jobs) <= int(*limit) {
		return nil
	}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b *batchv1.Job) int { return startOf(a).Compare(startOf(b)) })
	return jobs[:len(jobs)-int(*limit)]
}

func startOf(job *batchv1.Job) time.Time {
	return ptr.Deref(job.Status.StartTime, metav1.Time{}).Time
}

// References returns references to Jobs in the order of their names. They have no resource version,
// which changes more often than what users see of a Job.
func References(jobs []*batchv1.Job) []corev1.ObjectReference {
	var refs []corev1.ObjectReference
	for _, job := range jobs {
		refs = append(refs, corev1.ObjectReference{
			APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
		})
	}
	slices.SortFunc(refs, func(a, b corev1.ObjectReference) int { return strings.Compare(a.Name, b.Name) })
	return refs
}

// mostMissed is how many runs may have been missed.
const mostMissed = 100

// Times returns the latest time of the schedule that has passed without a run, zero if there is none,
// and the next one. Times count from the last run that the status has, or from the creation.
func Times(cronJob *v1.CronJob, now time.Time) (due, next time.Time, err error) {
	spec := &cronJob.Spec
	schedule, err := cron.ParseStandard(spec.Schedule)
	if err != nil {
		return due, next, fmt.Errorf("invalid schedule %q: %w", spec.Schedule, err)
	}
	zone, err := time.LoadLocation(ptr.Deref(spec.TimeZone, "UTC"))
	if err != nil {
		return due, next, fmt.Errorf("invalid time zone: %w", err)
	}
	last := ptr.Deref(cronJob.Status.LastScheduleTime, cronJob.CreationTimestamp).Time
	missed := 0
	for next = schedule.Next(last.In(zone)); !next.IsZero() && !next.After(now); next = schedule.Next(next) {
		if tooLate(spec, next, now) {
			continue
		}
		due = next
		if missed++; missed > mostMissed {
			return due, next, fmt.Errorf("more than %d runs were missed: set startingDeadlineSeconds, or check the clock", mostMissed)
		}
	}
	if next.IsZero() {
		return due, next, fmt.Errorf("the schedule %q has no next time", spec.Schedule)
	}
	return due, next, nil
}

func tooLate(spec *v1.CronJobSpec, at, now time.Time) bool {
	deadline := spec.StartingDeadlineSeconds
	return deadline != nil && now.Sub(at) > time.Duration(*deadline)*time.Second
}
