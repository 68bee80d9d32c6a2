// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func seconds(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// tested is the CronJob of the tests: a run every 20 seconds, of which the last two are kept.
var tested = cronJob{name: "c", created: epoch, every: 20 * time.Second, keepComplete: 2, keepFail: 1}

// recordOf is the record of an operator that is a little late each time and does everything right
// but to start the runs that are not among those of the given numbers.
func recordOf(runs ...int) []job {
	var jobs []job
	for n, k := range runs {
		j := job{name: fmt.Sprintf("c-%d", k), uid: fmt.Sprint(k), owner: "c", run: seconds(20 * k), outcome: batchv1.JobComplete}
		j.created, j.finished = j.run.Add(2*time.Second), j.run.Add(5*time.Second)
		if n+tested.keepComplete < len(runs) {
			j.gone = seconds(20*runs[n+tested.keepComplete] + 6)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// tenRuns is the record of an operator that does everything right. It is complete at 215 seconds.
func tenRuns() []job { return recordOf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) }

// A scheduleCase is a case of TestScheduleChecks.
type scheduleCase struct {
	name  string
	plant func(jobs []job) []job
	now   time.Time
	want  []string
}

var scheduleCases = []scheduleCase{
	{name: "all is well", plant: func(jobs []job) []job { return jobs }},
	{name: "a run is due since a moment", plant: func([]job) []job { return recordOf(1, 2, 3, 4, 5, 6, 7, 8, 9) }, now: seconds(214)},
	{name: "the last run is missed", plant: func([]job) []job { return recordOf(1, 2, 3, 4, 5, 6, 7, 8, 9) }, want: []string{"missed"}},
	{name: "the first run is missed", plant: func([]job) []job { return recordOf(2, 3, 4, 5, 6, 7, 8, 9, 10) }, want: []string{"missed"}},
	{name: "there is no Job at all", plant: func([]job) []job { return nil }, want: []string{"missed"}},
	{name: "a gap", plant: func([]job) []job { return recordOf(1, 2, 3, 4, 7, 8, 9, 10) }, want: []string{"missed"}},
	{name: "a run twice, under another name", plant: func(jobs []job) []job {
		again := jobs[9]
		again.name, again.uid, again.finished, again.outcome = "other", "other", time.Time{}, ""
		return append(jobs, again)
	}, want: []string{"twice"}},
	{name: "a run twice, when its first Job was gone", plant: func(jobs []job) []job {
		again := jobs[2]
		again.uid, again.created, again.finished, again.gone = "again", seconds(110), seconds(112), seconds(113)
		return slices.Insert(jobs, 3, again)
	}, want: []string{"twice"}},
	{name: "a Job between two runs", plant: func(jobs []job) []job {
		jobs[9].run = jobs[9].run.Add(time.Second)
		return jobs
	}, want: []string{"astray", "missed"}},
	{name: "a Job that does not say its run", plant: func(jobs []job) []job {
		return append([]job{{name: "stray", uid: "stray", owner: "c", created: seconds(3), finished: seconds(5), gone: seconds(6), outcome: "x"}}, jobs...)
	}, want: []string{"astray", "unfinished"}},
	{name: "a run before its time", plant: func(jobs []job) []job {
		jobs[9].created = jobs[9].run.Add(-time.Second)
		return jobs
	}, want: []string{"astray"}},
	{name: "too much history", plant: func(jobs []job) []job {
		jobs[0].gone = time.Time{}
		return jobs
	}, want: []string{"history"}},
	{name: "too much history in the past", plant: func(jobs []job) []job {
		jobs[0].gone = jobs[2].finished.Add(runGrace + time.Second)
		return jobs
	}, want: []string{"history"}},
	{name: "too much history for a moment", plant: func(jobs []job) []job {
		jobs[0].gone = jobs[2].finished.Add(runGrace)
		return jobs
	}},
	{name: "too little history", plant: func(jobs []job) []job {
		jobs[9].gone = seconds(210)
		return jobs
	}, want: []string{"history"}},
	{name: "an active Job is deleted", plant: func(jobs []job) []job {
		jobs[9].finished, jobs[9].outcome, jobs[9].gone = time.Time{}, "", seconds(203)
		jobs[7].gone = time.Time{} // else it would have gone too early
		return jobs
	}, want: []string{"unfinished"}},
	{name: "a Job does not end", plant: func(jobs []job) []job {
		jobs[9].finished, jobs[9].outcome = time.Time{}, ""
		jobs[7].gone = time.Time{}
		return jobs
	}, now: seconds(202 + 61), want: []string{"missed", "unfinished"}},
	{name: "a Job fails", plant: func(jobs []job) []job {
		jobs[9].outcome = batchv1.JobFailed
		jobs[7].gone = time.Time{}
		return jobs
	}, want: []string{"unfinished"}},
}

// The checks find what is planted, and nothing else.
func TestScheduleChecks(t *testing.T) {
	now := seconds(215)
	for _, test := range scheduleCases {
		t.Run(test.name, func(t *testing.T) {
			at := now
			if !test.now.IsZero() {
				at = test.now
			}
			jobs := test.plant(tenRuns())
			found := map[string][]violation{
				"missed": tested.missed(jobs, at), "twice": tested.twice(jobs), "astray": tested.astray(jobs),
				"unfinished": tested.unfinished(jobs, at), "history": tested.history(jobs, at),
			}
			var got []string
			for name, violations := range found {
				if len(violations) > 0 {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("violated checks (-want +got):\n%s\n%v", diff, found)
			}
		})
	}
}

// A Job that was deleted and came back under its name is two Jobs, and what a watch repeats is one.
func TestJobRecord(t *testing.T) {
	r := newJobRecord()
	first := testedJob("one")
	r.see(watch.Added, first, seconds(21))
	r.see(watch.Added, first, seconds(22))
	first.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}
	r.see(watch.Modified, first, seconds(24))
	r.see(watch.Modified, first, seconds(25))
	r.see(watch.Deleted, first, seconds(30))
	r.see(watch.Added, testedJob("two"), seconds(31))

	want := []job{
		{name: "c-1", uid: "one", owner: "c", run: seconds(20), created: seconds(20), finished: seconds(24), outcome: batchv1.JobComplete, gone: seconds(30)},
		{name: "c-1", uid: "two", owner: "c", run: seconds(20), created: seconds(20)},
	}
	got := r.of("c")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(job{})); diff != "" {
		t.Errorf("Jobs (-want +got):\n%s", diff)
	}
	if len(tested.twice(got)) != 1 {
		t.Errorf("twice: %v, want one", tested.twice(got))
	}
	if others := r.of("d"); len(others) != 0 {
		t.Errorf("Jobs of another CronJob: %v", others)
	}
}

func testedJob(uid string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "c-1", UID: types.UID(uid), CreationTimestamp: metav1.NewTime(seconds(20)),
		Annotations:     map[string]string{scheduledAt: seconds(20).Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{{Kind: "CronJob", Name: "c", Controller: ptr.To(true)}},
	}}
}

// The whole comparison finds what one CronJob of several has missed.
func TestCompareRuns(t *testing.T) {
	s := &schedule{cronJobs: []cronJob{tested}, record: newJobRecord()}
	for _, j := range tenRuns()[1:] {
		s.record.jobs[j.uid] = &j
	}
	got := make(map[string]string)
	for _, c := range s.compareRuns(seconds(215)).all {
		got[c.name] = fmt.Sprintf("%s/%d", c.seen, len(c.violations))
	}
	want := map[string]string{
		"runs expected": "10/0", "runs seen": "9 (with those of the last 15s)/0", "runs missed": "/1", "runs twice": "/0", "Jobs off the schedule": "/0",
		"Jobs not finished": "/0", "last schedule time": "/0", "Ready": "/0", "history limits": "kept by 1 of 1/0", "latest start of a run": "2s after its time/0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}
