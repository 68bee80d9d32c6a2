// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

func workloadColumns() map[schema.GroupKind]kindColumns {
	return map[schema.GroupKind]kindColumns{
		{Kind: "Pod"}:                     newColumns("Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*", podCells),
		{Group: "batch", Kind: "Job"}:     newColumns("Name Status Completions Duration Age Containers* Images* Selector*", jobCells),
		{Group: "batch", Kind: "CronJob"}: newColumns("Name Schedule Timezone Suspend? Active# Last_Schedule Age Containers* Images* Selector*", cronJobCells),
		{Group: "apps", Kind: "Deployment"}: newColumns("Name Ready Up-to-date Available Age Containers* Images* Selector*", func(d *appsv1.Deployment) []any {
			containers, images := containerTexts(d.Spec.Template.Spec)
			return []any{
				d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, 1)), int64(d.Status.UpdatedReplicas),
				int64(d.Status.AvailableReplicas), age(d), containers, images, selectorText(d.Spec.Selector),
			}
		}),
		{Group: "apps", Kind: "ReplicaSet"}: newColumns("Name Desired# Current# Ready# Age Containers* Images* Selector*", func(s *appsv1.ReplicaSet) []any {
			containers, images := containerTexts(s.Spec.Template.Spec)
			return []any{
				s.Name, int64(ptr.Deref(s.Spec.Replicas, 1)), int64(s.Status.Replicas), int64(s.Status.ReadyReplicas), age(s), containers, images,
				selectorText(s.Spec.Selector),
			}
		}),
		{Group: "apps", Kind: "StatefulSet"}: newColumns("Name Ready Age Containers* Images*", func(s *appsv1.StatefulSet) []any {
			containers, images := containerTexts(s.Spec.Template.Spec)
			return []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, ptr.Deref(s.Spec.Replicas, 1)), age(s), containers, images}
		}),
		{Group: "apps", Kind: "DaemonSet"}: newColumns("Name Desired# Current# Ready# Up-to-date# Available# Node_Selector Age Containers* Images* Selector*", func(s *appsv1.DaemonSet) []any {
			containers, images := containerTexts(s.Spec.Template.Spec)
			return []any{
				s.Name, int64(s.Status.DesiredNumberScheduled), int64(s.Status.CurrentNumberScheduled), int64(s.Status.NumberReady),
				int64(s.Status.UpdatedNumberScheduled), int64(s.Status.NumberAvailable), labelsText(s.Spec.Template.Spec.NodeSelector), age(s), containers, images,
				selectorText(s.Spec.Selector),
			}
		}),
	}
}

// containerTexts returns the names and the images of the containers of a Pod.
func containerTexts(spec corev1.PodSpec) (names, images string) {
	var n, i []string
	for _, c := range spec.Containers {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

func podCells(p *corev1.Pod) []any {
	ready, restarts := 0, int64(0)
	for _, c := range p.Status.ContainerStatuses {
		if c.Ready {
			ready++
		}
		restarts += int64(c.RestartCount)
	}
	gates := "<none>"
	if len(p.Spec.ReadinessGates) > 0 {
		met := 0
		for _, gate := range p.Spec.ReadinessGates {
			for _, condition := range p.Status.Conditions {
				if condition.Type == gate.ConditionType && condition.Status == corev1.ConditionTrue {
					met++
				}
			}
		}
		gates = fmt.Sprintf("%d/%d", met, len(p.Spec.ReadinessGates))
	}
	return []any{
		p.Name, fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)), podWord(p), strconv.FormatInt(restarts, 10), age(p),
		orNone(p.Status.PodIP), orNone(p.Spec.NodeName), orNone(p.Status.NominatedNodeName), gates,
	}
}

// podWord returns the state of a Pod in one word: its phase, or the reason why a container of it does
// not run.
func podWord(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	word := string(p.Status.Phase)
	if p.Status.Reason != "" {
		word = p.Status.Reason
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonSchedulingGated {
			word = condition.Reason
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			word = c.State.Waiting.Reason
		case c.State.Terminated != nil && c.State.Terminated.Reason != "":
			word = c.State.Terminated.Reason
		case c.State.Terminated != nil:
			word = fmt.Sprintf("ExitCode:%d", c.State.Terminated.ExitCode)
		}
	}
	return word
}

func jobCells(j *batchv1.Job) []any {
	containers, images := containerTexts(j.Spec.Template.Spec)
	completions := fmt.Sprintf("%d/1", j.Status.Succeeded)
	switch {
	case j.Spec.Completions != nil:
		completions = fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case ptr.Deref(j.Spec.Parallelism, 1) > 1:
		completions = fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, *j.Spec.Parallelism)
	}
	took := ""
	switch {
	case j.Status.StartTime == nil:
	case j.Status.CompletionTime != nil:
		took = duration.HumanDuration(j.Status.CompletionTime.Sub(j.Status.StartTime.Time))
	default:
		took = duration.HumanDuration(time.Since(j.Status.StartTime.Time))
	}
	return []any{j.Name, jobWord(j), completions, took, age(j), containers, images, selectorText(j.Spec.Selector)}
}

// jobWord returns the state of a Job in one word.
func jobWord(j *batchv1.Job) string {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		for _, condition := range j.Status.Conditions {
			if condition.Type == kind && condition.Status == corev1.ConditionTrue {
				return string(kind)
			}
		}
	}
	if j.DeletionTimestamp != nil {
		return "Terminating"
	}
	return "Running"
}

func cronJobCells(c *batchv1.CronJob) []any {
	containers, images := containerTexts(c.Spec.JobTemplate.Spec.Template.Spec)
	zone := "<none>"
	if c.Spec.TimeZone != nil {
		zone = *c.Spec.TimeZone
	}
	suspend := "False"
	if ptr.Deref(c.Spec.Suspend, false) {
		suspend = "True"
	}
	return []any{
		c.Name, c.Spec.Schedule, zone, suspend, int64(len(c.Status.Active)), since(c.Status.LastScheduleTime, "<none>"), age(c), containers, images,
		selectorText(c.Spec.JobTemplate.Spec.Selector),
	}
}
