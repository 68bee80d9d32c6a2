// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// retryTime is how long a Job waits after the failure of a Pod. It does not grow, so that a Job that
// fails has failed before the script continues.
const retryTime = time.Second

// Job returns the player of Jobs: it creates Pods until enough have succeeded or too many have
// failed. It knows parallelism, completions, indexes, suspension, the deadline, the limit of failures
// and the time to live; it ignores failure and success policies and limits for single indexes. It
// adopts the Pods that match its selector and have no controller.
//
// decide says what becomes of the Pods of a Job. It may be nil, and may return "" for what
// [OutcomeAnnotation] of the Job or of its template says.
func Job(decide func(*batchv1.Job) Outcome) Player {
	p := New(func(s *Stage, job *batchv1.Job) error {
		if job.DeletionTimestamp != nil || ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
			return nil
		}
		outcome := Outcome("")
		if decide != nil {
			outcome = decide(job.DeepCopy())
		}
		a := &attempt{stage: s, job: job, outcome: cmp.Or(outcome, Outcome(job.Annotations[OutcomeAnnotation]))}
		return a.play()
	})
	return adoptingPods(p, func(job *batchv1.Job) *metav1.LabelSelector { return job.Spec.Selector })
}

// attempt is one call for a Job.
type attempt struct {
	stage   *Stage
	job     *batchv1.Job
	outcome Outcome

	active, ending []*corev1.Pod
	succeeded      int32
	failed         int32
	indexes        map[int]bool // that have succeeded
}

func (a *attempt) play() error {
	if a.finished() {
		return a.expire()
	}
	job := a.job
	if err := (claim[*corev1.Pod]{selector: job.Spec.Selector}).make(a.stage, job); err != nil {
		return err
	}
	a.count()
	switch {
	case ptr.Deref(job.Spec.Suspend, false):
		return a.suspend()
	case job.Status.StartTime == nil:
		now := metav1.Now()
		job.Status.StartTime = &now
	}
	if a.hasCondition(batchv1.JobSuspended) {
		a.condition(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
	}
	var err error
	switch {
	case a.failed > ptr.Deref(job.Spec.BackoffLimit, 6):
		err = a.fail(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case a.isLate():
		err = a.fail(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	case a.isComplete():
		err = a.complete()
	default:
		err = a.fill()
	}
	a.setStatus()
	return errors.Join(err, a.stage.UpdateStatus(job))
}

func (a *attempt) finished() bool {
	return a.hasCondition(batchv1.JobComplete) || a.hasCondition(batchv1.JobFailed)
}

// expire deletes a finished Job whose time to live is over.
func (a *attempt) expire() error {
	ttl := a.job.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return nil
	}
	for _, c := range a.job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && !a.stage.until(c.LastTransitionTime.Add(time.Duration(*ttl)*time.Second)) {
			return nil
		}
	}
	return a.stage.Delete(a.job)
}

// count counts the Pods.
func (a *attempt) count() {
	a.active, a.ending, a.succeeded, a.failed, a.indexes = nil, nil, 0, 0, map[int]bool{}
	for _, pod := range Children[*corev1.Pod](a.stage, a.job) {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			a.succeeded++
			a.indexes[indexOf(pod)] = true
		case pod.Status.Phase == corev1.PodFailed:
			a.failed++
		case pod.DeletionTimestamp != nil:
			a.ending = append(a.ending, pod)
		default:
			a.active = append(a.active, pod)
		}
	}
	if a.indexed() {
		a.succeeded = int32(len(a.indexes))
	}
	// Pods that have ended may have been deleted since they were counted.
	a.succeeded, a.failed = max(a.succeeded, a.job.Status.Succeeded), max(a.failed, a.job.Status.Failed)
}

func (a *attempt) indexed() bool {
	return ptr.Deref(a.job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// indexOf returns the index of a Pod, or -1.
func indexOf(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return n
}

func (a *attempt) suspend() error {
	err := a.deleteActive()
	a.count()
	a.job.Status.StartTime = nil
	a.condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
	a.setStatus()
	return errors.Join(err, a.stage.UpdateStatus(a.job))
}

func (a *attempt) deleteActive() error {
	var errs []error
	for _, pod := range a.active {
		errs = append(errs, a.stage.Delete(pod))
	}
	return errors.Join(errs...)
}

func (a *attempt) isLate() bool {
	seconds := a.job.Spec.ActiveDeadlineSeconds
	return seconds != nil && a.stage.until(a.job.Status.StartTime.Add(time.Duration(*seconds)*time.Second))
}

func (a *attempt) isComplete() bool {
	if a.job.Spec.Completions == nil {
		return a.succeeded > 0 && len(a.active) == 0
	}
	return a.succeeded >= *a.job.Spec.Completions
}

// complete ends a Job that has succeeded, in the two steps of the real controller.
func (a *attempt) complete() error {
	if !a.hasCondition(batchv1.JobSuccessCriteriaMet) {
		a.condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
		return a.deleteActive()
	}
	if len(a.active)+len(a.ending) == 0 {
		a.condition(batchv1.JobComplete, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
		now := metav1.Now()
		a.job.Status.CompletionTime = &now
	}
	return nil
}

// fail ends a Job that has failed, in the two steps of the real controller.
func (a *attempt) fail(reason, message string) error {
	if !a.hasCondition(batchv1.JobFailureTarget) {
		a.condition(batchv1.JobFailureTarget, corev1.ConditionTrue, reason, message)
		return a.deleteActive()
	}
	if len(a.active)+len(a.ending) == 0 {
		a.condition(batchv1.JobFailed, corev1.ConditionTrue, reason, message)
	}
	return nil
}

// fill creates the Pods that are missing and deletes those too many.
func (a *attempt) fill() error {
	want := ptr.Deref(a.job.Spec.Parallelism, 1)
	switch completions := a.job.Spec.Completions; {
	case completions != nil:
		want = min(want, *completions-a.succeeded)
	case a.succeeded > 0:
		want = min(want, int32(len(a.active))) // one has ended the work of all
	}
	if a.failed > a.job.Status.Failed {
		a.stage.After(retryTime)
		return nil
	}
	var errs []error
	for range want - int32(len(a.active)+len(a.ending)) {
		errs = append(errs, a.stage.CreateFor(a.job, a.newPod()))
		a.count()
	}
	for _, pod := range a.active[min(max(0, int(want)), len(a.active)):] {
		errs = append(errs, a.stage.Delete(pod))
	}
	a.count()
	return errors.Join(errs...)
}

func (a *attempt) newPod() *corev1.Pod {
	pod := podFrom(&a.job.Spec.Template)
	pod.GenerateName = a.job.Name + "-"
	uid := string(a.job.UID)
	maps.Copy(pod.Labels, map[string]string{
		batchv1.JobNameLabel: a.job.Name, "job-name": a.job.Name, batchv1.ControllerUidLabel: uid, "controller-uid": uid,
	})
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if a.outcome != "" {
		pod.Annotations[OutcomeAnnotation] = string(a.outcome)
	}
	if a.indexed() {
		index := strconv.Itoa(a.nextIndex())
		pod.GenerateName = a.job.Name + "-" + index + "-"
		pod.Spec.Hostname = a.job.Name + "-" + index
		pod.Labels[batchv1.JobCompletionIndexAnnotation] = index
		pod.Annotations[batchv1.JobCompletionIndexAnnotation] = index
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Env = append(c.Env, corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", Value: index})
		}
	}
	return pod
}

// nextIndex returns the lowest index that no Pod has that runs or has succeeded.
func (a *attempt) nextIndex() int {
	taken := maps.Clone(a.indexes)
	for _, pod := range slices.Concat(a.active, a.ending) {
		taken[indexOf(pod)] = true
	}
	index := 0
	for taken[index] {
		index++
	}
	return index
}

// setStatus counts the Pods in the status.
func (a *attempt) setStatus() {
	status := &a.job.Status
	status.Active, status.Succeeded, status.Failed = int32(len(a.active)), a.succeeded, a.failed
	ending := int32(len(a.ending))
	ready := count(a.active, isReady)
	status.Ready, status.Terminating = &ready, &ending
	status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	if a.indexed() {
		status.CompletedIndexes = ranges(slices.Sorted(maps.Keys(a.indexes)))
	}
}

// ranges returns sorted numbers in the form of completedIndexes: "0-2,5".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		switch end - i {
		case 0:
			parts = append(parts, strconv.Itoa(numbers[i]))
		case 1:
			parts = append(parts, strconv.Itoa(numbers[i]), strconv.Itoa(numbers[end]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[end]))
		}
		i = end + 1
	}
	return strings.Join(parts, ",")
}

func (a *attempt) hasCondition(kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(a.job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func (a *attempt) condition(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) {
	now := metav1.Now()
	want := batchv1.JobCondition{Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now}
	for i, c := range a.job.Status.Conditions {
		if c.Type == kind {
			if c.Status != status {
				a.job.Status.Conditions[i] = want
			}
			return
		}
	}
	a.job.Status.Conditions = append(a.job.Status.Conditions, want)
}
