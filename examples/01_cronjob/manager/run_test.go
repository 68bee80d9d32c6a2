// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

func TestARunThatIsDueIsStarted(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:05Z")
	result := w.must(runNext)
	same(t, "requeues after", 55*time.Second, result.RequeueAfter)

	jobs := w.clusterJobs()
	if len(jobs) != 1 {
		t.Fatalf("got %d Jobs, want 1", len(jobs))
	}
	want := metav1.ObjectMeta{
		Namespace:   "default",
		Name:        job1201,
		UID:         "uid-of-" + job1201,
		Labels:      map[string]string{"app": "hello", "cronjob": "hello"},
		Annotations: map[string]string{"team": "a", "batch.ctrlkit.dev/scheduled-at": "2026-05-01T12:01:00Z"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "batch.ctrlkit.dev/v1", Kind: "CronJob", Name: "hello", UID: "uid-of-hello",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
	jobs[0].ResourceVersion = ""
	same(t, "metadata", want, jobs[0].ObjectMeta)
	same(t, "spec", w.cronJob.Spec.JobTemplate.Spec, jobs[0].Spec)

	status := w.status()
	w.scheduledLast("2026-05-01T12:01:00Z")
	same(t, "active", []string{job1201}, refNames(status.Active))
	wantCondition(t, status, v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonScheduled)
	wantCondition(t, status, v1.ConditionMissedRuns, metav1.ConditionFalse, v1.ReasonOnSchedule)
	w.wrote("create "+job1201, "patch status hello") // the effect comes before the status
	same(t, "events", []string{"Normal Started Started Job " + job1201}, w.takeEvents())
}

func TestNothingIsStartedBeforeItsTime(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		result := w.must(runNext)
		same(t, "requeues after", 30*time.Second, result.RequeueAfter)
		w.refresh()
	}
	w.wrote("patch status hello") // the second reconcile has nothing to write
}

func TestTheDeadlineIsCountedFromTheTimeInTheSchedule(t *testing.T) {
	tests := []struct {
		name, schedule, now string
		want                []string
	}{
		{"in time", "* * * * *", "2026-05-01T12:01:10Z", []string{job1201}},
		{"too late", "* * * * *", "2026-05-01T12:01:11Z", nil},
		// An interval that is longer than the deadline must not begin anew at every look.
		{"interval in time", "@every 1m", "2026-05-01T12:01:10Z", []string{job1201}},
		{"interval too late", "@every 1m", "2026-05-01T12:01:11Z", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(c *v1.CronJob) {
				c.Spec.Schedule, c.Spec.StartingDeadlineSeconds = tt.schedule, ptr.To[int64](10)
			})
			w.now = at(tt.now)
			result := w.must(runNext)
			same(t, "Jobs", tt.want, w.jobNames())
			same(t, "requeues after", at("2026-05-01T12:02:00Z").Sub(w.now), result.RequeueAfter)
			if tt.want == nil {
				wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionTrue, v1.ReasonDeadlinePassed)
				want := []string{"Warning StartingDeadlinePassed the run of 2026-05-01T12:01:00Z could not start within its deadline of 10 seconds"}
				same(t, "events", want, w.takeEvents())
			}
		})
	}
}

func TestAfterTooManyMissedRunsTheLatestIsStartedAndReportedOnce(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T15:00:00Z")
	w.must(runNext)
	w.scheduledLast("2026-05-01T15:00:00Z")
	same(t, "number of Jobs", 1, len(w.jobNames()))
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionTrue, v1.ReasonTooManyMissed)
	if events := w.takeEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Warning TooManyMissedRuns") }) {
		t.Errorf("events %q, want a warning", events)
	}

	// It stays for the user to see until the next run has started.
	w.refresh()
	w.now = at("2026-05-01T15:00:30Z")
	w.must(runNext)
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionTrue, v1.ReasonTooManyMissed)
	w.refresh()
	w.now = at("2026-05-01T15:01:00Z")
	w.must(runNext)
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionFalse, v1.ReasonOnSchedule)
}

func TestADeadlineBoundsWhatIsCalledMissed(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.StartingDeadlineSeconds = ptr.To[int64](30) })
	w.now = at("2026-05-01T15:00:00Z")
	w.must(runNext)
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionFalse, v1.ReasonOnSchedule)
}

func TestConcurrencyPolicies(t *testing.T) {
	tests := []struct {
		policy    v1.ConcurrencyPolicy
		wantJobs  []string
		wantWaits []ctrlkit.Waiting
	}{
		{"", []string{job1201, job1202}, nil},
		{v1.AllowConcurrent, []string{job1201, job1202}, nil},
		{v1.ForbidConcurrent, []string{job1201}, nil},
		{v1.ReplaceConcurrent, []string{job1202}, nil},
	}
	for _, tt := range tests {
		t.Run(string(tt.policy), func(t *testing.T) {
			w := newWorld(t, func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = tt.policy })
			w.addJob("2026-05-01T12:01:00Z")
			w.now = at("2026-05-01T12:02:00Z")
			result, err := w.run(runNext)
			if _, err := ctrlkit.IgnoreExit(result, err); err != nil {
				t.Fatal(err)
			}
			same(t, "waits", tt.wantWaits, ctrlkit.Waits(err))
			same(t, "Jobs", tt.wantJobs, w.jobNames())
			same(t, "active", tt.wantJobs, refNames(w.status().Active))
		})
	}
}

// A run that had to wait is started when the Job before it has finished, and only the latest of
// those that waited.
func TestARunThatWasForbiddenIsStartedLater(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = v1.ForbidConcurrent })
	job := w.addJob("2026-05-01T12:01:00Z")
	w.now = at("2026-05-01T12:04:30Z")
	if _, err := ctrlkit.IgnoreExit(w.run(runNext)); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, w.status(), v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonWaiting)

	finished(batchv1.JobComplete)(job)
	if err := w.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	w.refresh()
	w.must(runNext)
	w.scheduledLast("2026-05-01T12:04:00Z")
	same(t, "number of Jobs", 2, len(w.jobNames()))
}
