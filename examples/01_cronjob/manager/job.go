// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

const (
	// cronJobLabel names the CronJob of a Job. The state "jobs" in cronjob.ctrlkit selects by it.
	cronJobLabel = "cronjob"
	// scheduledAtAnnotation is the time in the schedule for which a Job was started.
	scheduledAtAnnotation = "batch.ctrlkit.dev/scheduled-at"
)

// newJob returns the Job for the run at a time of the schedule.
//
// Its name is derived from that time. If the operator tries to start the same run again, because it
// crashed before it recorded the run or because its cache is stale, it finds the existing Job.
func newJob(cronJob *v1.CronJob, at time.Time, scheme *runtime.Scheme) (*batchv1.Job, error) {
	template := cronJob.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   cronJob.Namespace,
			Name:        jobName(cronJob, at),
			Labels:      with(template.Labels, cronJobLabel, cronJob.Name),
			Annotations: with(template.Annotations, scheduledAtAnnotation, at.UTC().Format(time.RFC3339)),
		},
		Spec: template.Spec,
	}
	if err := controllerutil.SetControllerReference(cronJob, job, scheme); err != nil {
		return nil, fmt.Errorf("making CronJob %q the owner of Job %q: %w", cronJob.Name, job.Name, err)
	}
	return job, nil
}

// jobName contains the time in seconds, the shortest interval of @every. With it, 52 of 63
// characters remain for the name of the CronJob, to which the definition limits it.
func jobName(cronJob *v1.CronJob, at time.Time) string {
	return fmt.Sprintf("%s-%d", cronJob.Name, at.Unix())
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]string, 1)
	}
	m[key] = value
	return m
}

// scheduledAt returns the time of the schedule for which a Job was started, or zero if it has no
// annotation.
func scheduledAt(job *batchv1.Job) time.Time {
	at, err := time.Parse(time.RFC3339, job.Annotations[scheduledAtAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// finishedAs returns how a Job ended, JobComplete or JobFailed, and "" while it is active.
func finishedAs(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// byStart orders Jobs by their start, the first one first. A Job that has not started counts from
// its creation.
func byStart(a, b *batchv1.Job) int {
	return cmp.Or(startOf(a).Compare(startOf(b)), cmp.Compare(a.Name, b.Name))
}

func startOf(job *batchv1.Job) time.Time {
	if job.Status.StartTime != nil {
		return job.Status.StartTime.Time
	}
	return job.CreationTimestamp.Time
}

// beyondHistory returns the Jobs that ended in the given way, except for the latest ones, which are
// kept. It ignores Jobs that are being deleted.
func beyondHistory(jobs []batchv1.Job, ended batchv1.JobConditionType, keep *int32, byDefault int32) []*batchv1.Job {
	if keep == nil {
		keep = &byDefault
	}
	var finished []*batchv1.Job
	for i := range jobs {
		if finishedAs(&jobs[i]) == ended && jobs[i].DeletionTimestamp.IsZero() {
			finished = append(finished, &jobs[i])
		}
	}
	slices.SortFunc(finished, byStart)
	return finished[:max(0, len(finished)-max(0, int(*keep)))]
}

// reference returns a reference to a Job. It omits the resource version, with which every update of
// the Job would change the status of its CronJob.
func reference(job *batchv1.Job) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: batchv1.SchemeGroupVersion.String(),
		Kind:       "Job",
		Namespace:  job.Namespace,
		Name:       job.Name,
		UID:        job.UID,
	}
}
