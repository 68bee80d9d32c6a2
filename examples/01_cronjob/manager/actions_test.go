// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// The workflows of these tests: one action, and what it left in the status written down.

func listActive(m *CronJobControllerManager) ctrlkit.Action {
	return ctrlkit.Finally(m.ListActiveJobsAndUpdateStatus(), m.UpdateCronJobStatus())
}

func cleanUp(m *CronJobControllerManager) ctrlkit.Action {
	return m.CleanUpOldJobsExceedsHistoryLimits()
}

func runNext(m *CronJobControllerManager) ctrlkit.Action {
	return ctrlkit.Finally(
		ctrlkit.Sequential(m.ListActiveJobsAndUpdateStatus(), m.RunNextScheduledJob()), m.UpdateCronJobStatus())
}

func updateStatus(m *CronJobControllerManager) ctrlkit.Action { return m.UpdateCronJobStatus() }

const (
	// What the Jobs of the runs at 12:00, 12:01 and 12:02 are called.
	job1200 = "hello-1777636800"
	job1201 = "hello-1777636860"
	job1202 = "hello-1777636920"
)

func TestActiveJobsAreThoseThatHaveNotFinished(t *testing.T) {
	w := newWorld(t)
	w.addJob("2026-05-01T12:02:00Z")
	w.addJob("2026-05-01T12:00:00Z", finished(batchv1.JobComplete))
	w.addJob("2026-05-01T12:01:00Z")

	if _, err := w.run(listActive); err != nil {
		t.Fatal(err)
	}
	status := w.status()
	if diff := cmp.Diff([]string{job1201, job1202}, refNames(status.Active)); diff != "" {
		t.Errorf("active, in the order of names (-want +got)\n%s", diff)
	}
	want := corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: job1201, UID: "uid-of-" + job1201}
	if diff := cmp.Diff(want, status.Active[0]); diff != "" {
		t.Errorf("reference (-want +got)\n%s", diff)
	}
	// The operator may have died after it created the Job of 12:02 and before it wrote that down.
	if got := text(status.LastScheduleTime.Time); got != "2026-05-01T12:02:00Z" {
		t.Errorf("last schedule time %s, want that of the latest Job", got)
	}
}

func TestTheStatusDoesNotDependOnTheOrderOfTheCache(t *testing.T) {
	w := newWorld(t)
	w.addJob("2026-05-01T12:01:00Z")
	w.addJob("2026-05-01T12:02:00Z")
	for range 2 {
		if _, err := w.run(listActive); err != nil {
			t.Fatal(err)
		}
		w.refresh()
		slices.Reverse(w.jobs)
	}
	if diff := cmp.Diff([]string{"patch status hello"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
}

func TestLastScheduleTimeNeverGoesBack(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) {
		c.Status.LastScheduleTime = &metav1.Time{Time: at("2026-05-01T12:05:00Z")}
	})
	w.addJob("2026-05-01T12:01:00Z")
	if _, err := w.run(listActive); err != nil {
		t.Fatal(err)
	}
	if got := text(w.status().LastScheduleTime.Time); got != "2026-05-01T12:05:00Z" {
		t.Errorf("last schedule time %s, want what it was", got)
	}
}

// What the status calls active and the cache does not know is either too new for the cache, or it
// was deleted.
func TestActiveJobsThatTheCacheDoesNotKnow(t *testing.T) {
	tests := []struct {
		name   string
		change func(*testing.T, *world)
		want   []string
	}{
		{"it is too new", func(*testing.T, *world) {}, []string{job1201}},
		{"it was deleted", func(t *testing.T, w *world) {
			if err := w.api.Delete(t.Context(), &w.clusterJobs()[0]); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"another one has its name", func(_ *testing.T, w *world) { w.cronJob.Status.Active[0].UID = "uid-of-another" }, nil},
		{"it has finished", func(t *testing.T, w *world) {
			job := w.clusterJobs()[0]
			finished(batchv1.JobFailed)(&job)
			if err := w.api.Status().Update(t.Context(), &job); err != nil {
				t.Fatal(err)
			}
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.addJob("2026-05-01T12:01:00Z")
			if _, err := w.run(listActive); err != nil {
				t.Fatal(err)
			}
			w.refresh()
			w.jobs = nil
			tt.change(t, w)
			if _, err := w.run(listActive); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, refNames(w.status().Active)); diff != "" {
				t.Errorf("active (-want +got)\n%s", diff)
			}
		})
	}
}

func TestNothingIsDoneWithoutTheState(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:00Z")
	wantErr := errors.New("the cache is closed")
	_, err := w.reconcile(func() *CronJobControllerManagerFakeState { return &CronJobControllerManagerFakeState{JobsErr: wantErr} }, runNext)
	if !errors.Is(err, wantErr) {
		t.Errorf("got error %v, want %v", err, wantErr)
	}
	if diff := cmp.Diff([]string{"patch status hello"}, w.writes); diff != "" {
		t.Errorf("writes, the status says what has failed (-want +got)\n%s", diff)
	}
}

func TestCleanUpKeepsTheLatest(t *testing.T) {
	tests := []struct {
		name          string
		successful    *int32
		failed        *int32
		wantRemaining []string
	}{
		{"defaults", nil, nil, []string{"c2", "c3", "c4", "f2", "running"}},
		{"none", ptr.To[int32](0), ptr.To[int32](0), []string{"running"}},
		{"one of each", ptr.To[int32](1), ptr.To[int32](1), []string{"c4", "f2", "running"}},
		{"more than there are", ptr.To[int32](9), ptr.To[int32](9), []string{"c1", "c2", "c3", "c4", "f1", "f2", "running"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(c *v1.CronJob) {
				c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = tt.successful, tt.failed
				recordedUntil("2026-05-01T12:09:00Z")(c)
			})
			// The order of starting is not that of names or of times in the schedule.
			named := func(name string) func(*batchv1.Job) { return func(job *batchv1.Job) { job.Name = name } }
			w.addJob("2026-05-01T12:09:00Z", named("c1"), startedAt("2026-05-01T12:01:00Z"), finished(batchv1.JobComplete))
			w.addJob("2026-05-01T12:02:00Z", named("c4"), startedAt("2026-05-01T12:04:00Z"), finished(batchv1.JobComplete))
			w.addJob("2026-05-01T12:03:00Z", named("c3"), startedAt("2026-05-01T12:03:00Z"), finished(batchv1.JobComplete))
			w.addJob("2026-05-01T12:02:30Z", named("c2"), finished(batchv1.JobComplete)) // never started: counts from its creation
			w.addJob("2026-05-01T12:01:00Z", named("f1"), startedAt("2026-05-01T12:01:00Z"), finished(batchv1.JobFailed))
			w.addJob("2026-05-01T12:02:00Z", named("f2"), startedAt("2026-05-01T12:02:00Z"), finished(batchv1.JobFailed))
			w.addJob("2026-05-01T12:00:00Z", named("running"), startedAt("2026-05-01T12:00:00Z"))

			if _, err := w.run(cleanUp); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.wantRemaining, w.jobNames()); diff != "" {
				t.Errorf("Jobs (-want +got)\n%s", diff)
			}
		})
	}
}

func TestCleanUpDeletesPodsInTheBackgroundAndOnlyWhatItHasSeen(t *testing.T) {
	w := newWorld(t, recordedUntil("2026-05-01T12:09:00Z"), func(c *v1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](0) })
	w.addJob("2026-05-01T12:01:00Z", finished(batchv1.JobComplete))
	var got client.DeleteOptions
	w.faults = interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
		got.ApplyOptions(opts)
		return c.Delete(ctx, obj, opts...)
	}}
	if _, err := w.run(cleanUp); err != nil {
		t.Fatal(err)
	}
	if got.PropagationPolicy == nil || *got.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("propagation policy %v, want Background", got.PropagationPolicy)
	}
	if got.Preconditions == nil || *got.Preconditions.UID != types.UID("uid-of-"+job1201) {
		t.Errorf("preconditions %v, want the UID of the Job", got.Preconditions)
	}
}

func TestCleanUpGoesOnAfterAnError(t *testing.T) {
	w := newWorld(t, recordedUntil("2026-05-01T12:09:00Z"), func(c *v1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](0) })
	w.addJob("2026-05-01T12:00:00Z", finished(batchv1.JobComplete))
	w.addJob("2026-05-01T12:01:00Z", finished(batchv1.JobComplete))
	w.addJob("2026-05-01T12:02:00Z", finished(batchv1.JobComplete))
	down := errors.New("the API server is down")
	w.faults = interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
		switch obj.GetName() {
		case job1200: // somebody else was faster
			return apierrors.NewNotFound(batchv1.Resource("jobs"), obj.GetName())
		case job1201:
			return down
		}
		return c.Delete(ctx, obj, opts...)
	}}
	_, err := w.run(cleanUp)
	if !errors.Is(err, down) || !strings.Contains(err.Error(), job1201) || strings.Contains(err.Error(), job1200) {
		t.Errorf("got error %v, want one that names Job %s alone", err, job1201)
	}
	if slices.Contains(w.jobNames(), job1202) {
		t.Errorf("Job %s was not deleted", job1202)
	}
}

// recordedUntil has the status know the runs until then.
func recordedUntil(last string) func(*v1.CronJob) {
	return func(c *v1.CronJob) { c.Status.LastScheduleTime = &metav1.Time{Time: at(last)} }
}

// The Job of a run that the status does not know yet is the only evidence of the run.
func TestCleanUpKeepsTheEvidenceOfARun(t *testing.T) {
	w := newWorld(t, recordedUntil("2026-05-01T12:01:00Z"), func(c *v1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](0) })
	w.addJob("2026-05-01T12:01:00Z", finished(batchv1.JobComplete))
	w.addJob("2026-05-01T12:02:00Z", finished(batchv1.JobComplete))
	if _, err := w.run(cleanUp); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{job1202}, w.jobNames()); diff != "" {
		t.Errorf("Jobs (-want +got)\n%s", diff)
	}
}

func TestJobsThatAreBeingDeletedCountForNothing(t *testing.T) {
	w := newWorld(t, recordedUntil("2026-05-01T12:09:00Z"), func(c *v1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](1) })
	w.addJob("2026-05-01T12:01:00Z", finished(batchv1.JobComplete))
	leaving := w.addJob("2026-05-01T12:02:00Z", finished(batchv1.JobComplete), func(job *batchv1.Job) {
		job.Finalizers = []string{"example.com/wait"}
	})
	if err := w.api.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	w.refresh()
	if _, err := w.run(cleanUp); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch status hello"}, w.writes); diff != "" {
		t.Errorf("writes: one Job is kept and the other is on its way (-want +got)\n%s", diff)
	}
}

func TestARunThatIsDueIsStarted(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:05Z")
	result, err := w.run(runNext)
	if err != nil {
		t.Fatal(err)
	}
	if want := 55 * time.Second; result.RequeueAfter != want {
		t.Errorf("looks again after %s, want %s", result.RequeueAfter, want)
	}

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
	if diff := cmp.Diff(want, jobs[0].ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(w.cronJob.Spec.JobTemplate.Spec, jobs[0].Spec); diff != "" {
		t.Errorf("spec (-want +got)\n%s", diff)
	}

	status := w.status()
	if got := text(status.LastScheduleTime.Time); got != "2026-05-01T12:01:00Z" {
		t.Errorf("last schedule time %s", got)
	}
	if diff := cmp.Diff([]string{job1201}, refNames(status.Active)); diff != "" {
		t.Errorf("active (-want +got)\n%s", diff)
	}
	wantCondition(t, status, v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonScheduled)
	wantCondition(t, status, v1.ConditionMissedRuns, metav1.ConditionFalse, v1.ReasonOnSchedule)
	if diff := cmp.Diff([]string{"create " + job1201, "patch status hello"}, w.writes); diff != "" {
		t.Errorf("writes, the effect before the status (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Normal Started Started Job " + job1201}, w.takeEvents()); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

func TestNothingIsStartedBeforeItsTime(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		result, err := w.run(runNext)
		if err != nil {
			t.Fatal(err)
		}
		if want := 30 * time.Second; result.RequeueAfter != want {
			t.Errorf("looks again after %s, want %s", result.RequeueAfter, want)
		}
		w.refresh()
	}
	if diff := cmp.Diff([]string{"patch status hello"}, w.writes); diff != "" {
		t.Errorf("writes of two reconciles, the second with nothing to write (-want +got)\n%s", diff)
	}
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
			result, err := w.run(runNext)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, w.jobNames()); diff != "" {
				t.Errorf("Jobs (-want +got)\n%s", diff)
			}
			if want := at("2026-05-01T12:02:00Z").Sub(w.now); result.RequeueAfter != want {
				t.Errorf("looks again after %s, want %s", result.RequeueAfter, want)
			}
			if tt.want == nil {
				wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionTrue, v1.ReasonDeadlinePassed)
				want := []string{"Warning StartingDeadlinePassed the run of 2026-05-01T12:01:00Z could not start within its deadline of 10 seconds"}
				if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
					t.Errorf("events (-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestAfterTooManyMissedRunsTheLatestIsStartedAndTheUserToldOnce(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T15:00:00Z")
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	if got := text(w.status().LastScheduleTime.Time); got != "2026-05-01T15:00:00Z" {
		t.Errorf("last schedule time %s, want the latest", got)
	}
	if got := len(w.jobNames()); got != 1 {
		t.Errorf("%d Jobs were started, want 1", got)
	}
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionTrue, v1.ReasonTooManyMissed)
	if events := w.takeEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Warning TooManyMissedRuns") }) {
		t.Errorf("events %q, want a warning", events)
	}

	// It stays for the user to see until the next run has started.
	w.refresh()
	w.now = at("2026-05-01T15:00:30Z")
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionTrue, v1.ReasonTooManyMissed)
	w.refresh()
	w.now = at("2026-05-01T15:01:00Z")
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionFalse, v1.ReasonOnSchedule)
}

func TestADeadlineBoundsWhatIsCalledMissed(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.StartingDeadlineSeconds = ptr.To[int64](30) })
	w.now = at("2026-05-01T15:00:00Z")
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, w.status(), v1.ConditionMissedRuns, metav1.ConditionFalse, v1.ReasonOnSchedule)
}

func TestConcurrencyPolicies(t *testing.T) {
	tests := []struct {
		policy    v1.ConcurrencyPolicy
		wantJobs  []string
		wantWaits []ctrlkit.Wait
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
			if diff := cmp.Diff(tt.wantWaits, ctrlkit.Waits(err)); diff != "" {
				t.Errorf("waits (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantJobs, w.jobNames()); diff != "" {
				t.Errorf("Jobs (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantJobs, refNames(w.status().Active)); diff != "" {
				t.Errorf("active (-want +got)\n%s", diff)
			}
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
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	if got := text(w.status().LastScheduleTime.Time); got != "2026-05-01T12:04:00Z" {
		t.Errorf("last schedule time %s, want the latest that was due", got)
	}
	if got := len(w.jobNames()); got != 2 {
		t.Errorf("%d Jobs, want the old and one new", got)
	}
}

// The cache does not know the Job of the last run yet, and the status says that there is one.
func TestForbidHoldsWhileTheCacheIsBehind(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = v1.ForbidConcurrent })
	w.now = at("2026-05-01T12:01:00Z")
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	w.refresh()
	w.jobs = nil
	w.now = at("2026-05-01T12:02:00Z")
	if _, err := ctrlkit.IgnoreExit(w.run(runNext)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{job1201}, w.jobNames()); diff != "" {
		t.Errorf("Jobs (-want +got)\n%s", diff)
	}
}

func TestNothingIsStartedFromAnOldVersion(t *testing.T) {
	tests := []struct {
		name   string
		change func(context.Context, client.Client, *v1.CronJob) error
	}{
		{"the user has suspended it", func(ctx context.Context, c client.Client, cronJob *v1.CronJob) error {
			cronJob.Spec.Suspend = ptr.To(true)
			return c.Update(ctx, cronJob)
		}},
		{"the run was started and its Job deleted", func(ctx context.Context, c client.Client, cronJob *v1.CronJob) error {
			cronJob.Status.LastScheduleTime = &metav1.Time{Time: at("2026-05-01T12:01:00Z")}
			return c.Status().Update(ctx, cronJob)
		}},
		{"it was deleted", func(ctx context.Context, c client.Client, cronJob *v1.CronJob) error { return c.Delete(ctx, cronJob) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.now = at("2026-05-01T12:01:00Z")
			if err := tt.change(t.Context(), w.api, w.cronJob.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			result, err := w.run(runNext)
			if result, err := ctrlkit.IgnoreExit(result, err); err != nil || !result.IsZero() {
				t.Errorf("got %v and error %v, want to wait for the event", result, err)
			}
			if diff := cmp.Diff([]string(nil), w.jobNames()); diff != "" {
				t.Errorf("Jobs (-want +got)\n%s", diff)
			}
		})
	}
}

// A crash after the Job was created and before the status was written, and a cache that has neither
// yet.
func TestARunIsStartedOnce(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:00Z")
	crash := errors.New("crashed")
	w.faults = interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return crash
	}}
	if _, err := w.run(runNext); !errors.Is(err, crash) {
		t.Fatalf("got error %v, want %v", err, crash)
	}
	w.faults = interceptor.Funcs{}
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{job1201}, w.jobNames()); diff != "" {
		t.Errorf("Jobs (-want +got)\n%s", diff)
	}
	status := w.status()
	if got := text(status.LastScheduleTime.Time); got != "2026-05-01T12:01:00Z" {
		t.Errorf("last schedule time %s", got)
	}
	if diff := cmp.Diff([]string{job1201}, refNames(status.Active)); diff != "" {
		t.Errorf("active (-want +got)\n%s", diff)
	}
}

func TestAJobThatTheUserDeletedIsNotStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:00Z")
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(t.Context(), &w.clusterJobs()[0]); err != nil {
		t.Fatal(err)
	}
	w.refresh()
	w.now = at("2026-05-01T12:01:59Z")
	if _, err := w.run(runNext); err != nil {
		t.Fatal(err)
	}
	if got := w.jobNames(); len(got) != 0 {
		t.Errorf("Jobs %q, want none", got)
	}
}

func TestAJobOfSomebodyElseHasTheName(t *testing.T) {
	w := newWorld(t)
	w.addJob("2026-05-01T12:01:00Z", func(job *batchv1.Job) {
		job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Thing", Name: "other", UID: "x", Controller: ptr.To(true)}}
	})
	w.jobs = nil
	w.now = at("2026-05-01T12:01:00Z")
	_, err := w.run(runNext)
	if err == nil || !strings.Contains(err.Error(), `Job "`+job1201+`", which belongs to Thing "other"`) {
		t.Errorf("got error %v, want one that names the Job and its owner", err)
	}
	wantCondition(t, w.status(), v1.ConditionScheduled, metav1.ConditionFalse, v1.ReasonJobNameTaken)
	if w.status().LastScheduleTime != nil {
		t.Error("the run counts as started")
	}
}

func TestAJobThatTheAPIServerRefuses(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:00Z")
	refused := apierrors.NewForbidden(batchv1.Resource("jobs"), job1201, errors.New("exceeded quota"))
	w.faults = interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return refused
	}}
	for range 3 {
		if _, err := w.run(runNext); !apierrors.IsForbidden(err) {
			t.Errorf("got error %v, want %v", err, refused)
		}
		w.refresh()
	}
	wantCondition(t, w.status(), v1.ConditionScheduled, metav1.ConditionFalse, v1.ReasonJobNotCreated)
	if got := w.takeEvents(); len(got) != 1 || !strings.Contains(got[0], "exceeded quota") {
		t.Errorf("events %q, want one that says why", got)
	}
	if diff := cmp.Diff([]string{"patch status hello"}, w.writes); diff != "" {
		t.Errorf("writes of three tries (-want +got)\n%s", diff)
	}
}

func TestAMistakeInTheSpecIsToldAndNotTriedAgain(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.Schedule = "every day" })
	for range 3 {
		result, err := w.run(runNext)
		if err != nil || !result.IsZero() {
			t.Errorf("got %v and error %v, want neither a requeue nor an error", result, err)
		}
		w.refresh()
	}
	wantCondition(t, w.status(), v1.ConditionScheduled, metav1.ConditionFalse, v1.ReasonInvalidSchedule)
	if got := w.takeEvents(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning InvalidSchedule") {
		t.Errorf("events %q, want one warning", got)
	}
	if diff := cmp.Diff([]string{"patch status hello"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got)\n%s", diff)
	}
}

func TestSuspendedIsReady(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.Suspend = ptr.To(true) })
	if _, err := w.run(updateStatus); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, w.status(), v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonSuspended)
}

// A status made from an old version replaces nothing.
func TestAConflictIsNotOverwritten(t *testing.T) {
	w := newWorld(t)
	newer := w.cronJob.DeepCopy()
	newer.Status.Active = []corev1.ObjectReference{{Name: "of another process"}}
	if err := w.api.Status().Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	w.addJob("2026-05-01T12:01:00Z")
	if _, err := w.run(listActive); err != nil {
		t.Errorf("got error %v, want to look again without one", err)
	}
	if got := w.status().Active; len(got) != 1 || got[0].Name != "of another process" {
		t.Errorf("active %v was written over a newer version", got)
	}
}

func TestTheStatusOfACronJobThatIsGoneIsNotMissed(t *testing.T) {
	w := newWorld(t)
	w.addJob("2026-05-01T12:01:00Z")
	if err := w.api.Delete(t.Context(), w.cronJob.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.run(listActive); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}

func wantCondition(t testReporter, status v1.CronJobStatus, kind string, want metav1.ConditionStatus, reason string) {
	t.Helper()
	c := meta.FindStatusCondition(status.Conditions, kind)
	if c == nil {
		t.Errorf("condition %s is missing, want %s because of %s", kind, want, reason)
		return
	}
	if c.Status != want || c.Reason != reason {
		t.Errorf("condition %+v, want %s because of %s", *c, want, reason)
	}
}

// testReporter is a test of package testing or of package rapid.
type testReporter interface {
	Helper()
	Errorf(format string, args ...any)
}

func refNames(refs []corev1.ObjectReference) []string {
	var names []string
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	return names
}
