// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/sim/player"
)

func job(change func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: named("x"), Spec: batchv1.JobSpec{Template: template("busybox:1")}}
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if change != nil {
		change(j)
	}
	return j
}

// A Job ends as its Pods do.
func TestJob(t *testing.T) {
	for name, test := range map[string]struct {
		set        player.Set
		change     func(*batchv1.Job)
		conditions []batchv1.JobConditionType
		succeeded  int32
		failed     int32
		active     int32
		indexes    string
	}{
		"succeeds":      {conditions: []batchv1.JobConditionType{"SuccessCriteriaMet", "Complete"}, succeeded: 1},
		"three of four": {change: func(j *batchv1.Job) { j.Spec.Completions, j.Spec.Parallelism = new(int32(4)), new(int32(3)) }, conditions: []batchv1.JobConditionType{"SuccessCriteriaMet", "Complete"}, succeeded: 4},
		"indexed": {change: func(j *batchv1.Job) {
			j.Spec.Completions, j.Spec.Parallelism, j.Spec.CompletionMode = new(int32(4)), new(int32(3)), new(batchv1.IndexedCompletion)
		}, conditions: []batchv1.JobConditionType{"SuccessCriteriaMet", "Complete"}, succeeded: 4, indexes: "0-3"},
		"fails": {change: func(j *batchv1.Job) {
			j.Spec.BackoffLimit, j.Annotations = new(int32(2)), map[string]string{player.OutcomeAnnotation: string(player.Fail)}
		}, conditions: []batchv1.JobConditionType{"FailureTarget", "Failed"}, failed: 3},
		"a player decides": {set: player.Defaults().With(player.Job(func(*batchv1.Job) player.Outcome { return player.Fail })),
			change: func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(0)) }, conditions: []batchv1.JobConditionType{"FailureTarget", "Failed"}, failed: 1},
		"runs": {change: func(j *batchv1.Job) {
			j.Spec.Template.Annotations = map[string]string{player.OutcomeAnnotation: string(player.Runs)}
		}, active: 1},
		"too late": {change: func(j *batchv1.Job) {
			j.Spec.ActiveDeadlineSeconds, j.Annotations = new(int64(30)), map[string]string{player.OutcomeAnnotation: string(player.Pending)}
		}, conditions: []batchv1.JobConditionType{"FailureTarget", "Failed"}},
		"suspended": {change: func(j *batchv1.Job) { j.Spec.Suspend = new(true) }, conditions: []batchv1.JobConditionType{"Suspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, test.set, func(t *theater) {
				x := job(test.change)
				t.create(x)
				t.settle()
				s := get(t, x).Status
				var conditions []batchv1.JobConditionType
				for _, c := range s.Conditions {
					conditions = append(conditions, c.Type)
				}
				if diff := cmp.Diff(test.conditions, conditions); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]int32{test.succeeded, test.failed, test.active}, []int32{s.Succeeded, s.Failed, s.Active}); diff != "" {
					t.Errorf("succeeded, failed, active: %s", diff)
				}
				if complete := len(conditions) > 1 && conditions[1] == batchv1.JobComplete; complete != (s.CompletionTime != nil) || s.CompletedIndexes != test.indexes {
					t.Errorf("completion time %v, indexes %q", s.CompletionTime, s.CompletedIndexes)
				}
			})
		})
	}
}

// A suspended Job has no Pods. It continues when it is resumed, and is deleted when its time is over.
func TestJobIsResumed(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		x := job(func(j *batchv1.Job) {
			j.Spec.TTLSecondsAfterFinished = new(int32(300))
			j.Spec.Template.Annotations = map[string]string{player.OutcomeAnnotation: string(player.Runs)}
		})
		t.create(x)
		t.settle()
		update(t, x, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		t.settle()
		if j := get(t, x); j.Status.Active != 0 || j.Status.StartTime != nil {
			t.Errorf("the suspended Job has %d Pods", j.Status.Active)
		}
		update(t, x, func(j *batchv1.Job) {
			j.Spec.Suspend, j.Annotations = new(false), map[string]string{player.OutcomeAnnotation: string(player.Succeed)}
		})
		t.settle()
		if j := get(t, x); j.Status.Succeeded != 1 || j.Status.StartTime == nil {
			t.Errorf("after it was resumed: %+v", j.Status)
		}
		t.pass(5 * time.Minute)
		if jobs := list[batchv1.Job](t); len(jobs) != 0 {
			t.Error("the Job is not deleted after its time to live")
		}
	})
}
