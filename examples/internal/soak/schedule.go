// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

const (
	// runGrace is how late a run may start, and how long a Job may be kept beyond the history
	// limit: the operator may have been killed at the moment in which it was due.
	runGrace = 15 * time.Second
	// jobGrace is how long a Job may take. Its Pod takes 1.5 seconds; the control plane takes the
	// remaining time.
	jobGrace = time.Minute

	// scheduledAt is where a Job says which run of its CronJob it is.
	scheduledAt = "batch.ctrlkit.dev/scheduled-at"
	// exitCode makes the Pods of the control plane fail.
	exitCode = "controlplane.ctrlkit.dev/exit-code"
)

// A job is what was seen of one Job. It is kept when the Job is gone.
type job struct {
	name, uid, owner string
	run              time.Time // in the schedule; zero if the Job does not say it
	created          time.Time
	finished         time.Time // when it was seen to have finished, zero before
	outcome          batchv1.JobConditionType
	gone             time.Time // when it was seen to be deleted, zero before
}

// A jobRecord is all Jobs that there ever were: those beyond the history limit are deleted, and a
// Job may be deleted and come back under its name.
type jobRecord struct {
	mu   sync.Mutex // guards what follows
	jobs map[string]*job
	err  error // why the record has an end
}

func newJobRecord() *jobRecord { return &jobRecord{jobs: make(map[string]*job)} }

// see records an event of a watch.
func (r *jobRecord) see(event watch.EventType, obj *batchv1.Job, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[string(obj.UID)]
	if j == nil {
		j = &job{name: obj.Name, uid: string(obj.UID), created: obj.CreationTimestamp.Time}
		if owner := metav1.GetControllerOf(obj); owner != nil {
			j.owner = owner.Name
		}
		if at, err := time.Parse(time.RFC3339, obj.Annotations[scheduledAt]); err == nil {
			j.run = at
		}
		r.jobs[j.uid] = j
	}
	for _, c := range obj.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue && j.finished.IsZero() {
			j.finished, j.outcome = now, c.Type
		}
	}
	if (event == watch.Deleted || obj.DeletionTimestamp != nil) && j.gone.IsZero() {
		j.gone = now
	}
}

// of returns copies of the Jobs of a CronJob, by their runs.
func (r *jobRecord) of(owner string) []job {
	r.mu.Lock()
	defer r.mu.Unlock()
	var jobs []job
	for _, j := range r.jobs {
		if j.owner == owner {
			jobs = append(jobs, *j)
		}
	}
	slices.SortFunc(jobs, func(a, b job) int {
		return cmp.Or(a.run.Compare(b.run), a.created.Compare(b.created), cmp.Compare(a.uid, b.uid))
	})
	return jobs
}

func (r *jobRecord) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.jobs)
}

// follow records the Jobs of a namespace until ctx is done.
func (r *jobRecord) follow(ctx context.Context, user client.WithWatch) error {
	var jobs batchv1.JobList
	if err := user.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the Jobs: %w", err)
	}
	for i := range jobs.Items {
		r.see(watch.Added, &jobs.Items[i], time.Now())
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, jobs.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return user.Watch(ctx, &batchv1.JobList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		return fmt.Errorf("watching the Jobs: %w", err)
	}
	go func() {
		for event := range w.ResultChan() {
			if obj, ok := event.Object.(*batchv1.Job); ok {
				r.see(event.Type, obj, time.Now())
			}
		}
		if ctx.Err() == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err = fmt.Errorf("the watch of Jobs ended at %s: the runs after that are not known", clock(time.Now()))
		}
	}()
	return nil
}

// incomplete returns why the record is not complete.
func (r *jobRecord) incomplete() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// A cronJob is what the model knows of a CronJob.
type cronJob struct {
	name                   string
	created                time.Time
	every                  time.Duration
	keepComplete, keepFail int
	fails                  bool // its Jobs fail
}

// due returns the times at which it must have run by now. An interval counts from the creation.
func (c cronJob) due(now time.Time) []time.Time {
	var times []time.Time
	for at := c.created.Add(c.every); !at.After(now); at = at.Add(c.every) {
		times = append(times, at)
	}
	return times
}

// missed returns the runs that have no Job.
func (c cronJob) missed(jobs []job, now time.Time) []violation {
	seen := make(map[int64]bool)
	for _, j := range jobs {
		seen[j.run.Unix()] = true
	}
	var found []violation
	for n, at := range c.due(now.Add(-runGrace)) {
		if !seen[at.Unix()] {
			found = append(found, c.violation("run %d was due at %s and has no Job", n+1, clock(at)))
		}
	}
	return found
}

// twice returns the runs that have more than one Job. The Jobs are in the order of their runs.
func (c cronJob) twice(jobs []job) []violation {
	var found []violation
	for i := 1; i < len(jobs); i++ {
		a, b := jobs[i-1], jobs[i]
		if !a.run.IsZero() && a.run.Equal(b.run) {
			found = append(found, c.violation("the run of %s has two Jobs: %s (UID %s, created %s) and %s (UID %s, created %s)",
				clock(a.run), a.name, a.uid, clock(a.created), b.name, b.uid, clock(b.created)))
		}
	}
	return found
}

// astray returns the Jobs of no run: they name none, one that is not in the schedule, or one that
// had not come yet.
func (c cronJob) astray(jobs []job) []violation {
	var found []violation
	for _, j := range jobs {
		since := j.run.Sub(c.created)
		switch {
		case j.run.IsZero():
			found = append(found, c.violation("Job %s has no time in the annotation %s", j.name, scheduledAt))
		case since <= 0 || since%c.every != 0:
			found = append(found, c.violation("Job %s is for %s, which is no multiple of %s after %s", j.name, clock(j.run), c.every, clock(c.created)))
		case j.created.Before(j.run):
			found = append(found, c.violation("Job %s is for %s and was created before, at %s", j.name, clock(j.run), clock(j.created)))
		}
	}
	return found
}

// unfinished returns the Jobs that were deleted before they had finished, that take too long, and
// that ended other than they should.
func (c cronJob) unfinished(jobs []job, now time.Time) []violation {
	var found []violation
	want := batchv1.JobComplete
	if c.fails {
		want = batchv1.JobFailed
	}
	for _, j := range jobs {
		switch {
		case !j.finished.IsZero() && j.outcome != want:
			found = append(found, c.violation("Job %s is %s, want %s", j.name, j.outcome, want))
		case j.finished.IsZero() && !j.gone.IsZero():
			found = append(found, c.violation("Job %s was deleted at %s while it was active", j.name, clock(j.gone)))
		case j.finished.IsZero() && now.Sub(j.created) > jobGrace:
			found = append(found, c.violation("Job %s is still active, %s after it was created", j.name, now.Sub(j.created).Round(time.Second)))
		}
	}
	return found
}

// history returns when more Jobs were kept than the limits allow for longer than the grace, and
// when one was deleted that should have been kept.
func (c cronJob) history(jobs []job, now time.Time) []violation {
	limit := map[batchv1.JobConditionType]int{batchv1.JobComplete: c.keepComplete, batchv1.JobFailed: c.keepFail}
	var found []violation
	for _, outcome := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		kept, over := 0, time.Time{}
		tooLong := func(until time.Time) {
			if !over.IsZero() && until.Sub(over) > runGrace {
				found = append(found, c.violation("more than %d %s Jobs were kept from %s to %s", limit[outcome], outcome, clock(over), clock(until)))
			}
		}
		for _, e := range historyOf(jobs, outcome) {
			if e.gone && kept <= limit[outcome] {
				found = append(found, c.violation("Job %s was deleted at %s, and is among the last %d %s ones", e.name, clock(e.at), limit[outcome], outcome))
			}
			kept += e.change()
			switch {
			case kept <= limit[outcome]:
				tooLong(e.at)
				over = time.Time{}
			case over.IsZero():
				over = e.at
			}
		}
		tooLong(now)
	}
	return found
}

// A historyEvent is that a Job finished, or that one that had finished was deleted.
type historyEvent struct {
	at   time.Time
	name string
	gone bool
}

func (e historyEvent) change() int {
	if e.gone {
		return -1
	}
	return 1
}

func historyOf(jobs []job, outcome batchv1.JobConditionType) []historyEvent {
	var events []historyEvent
	for _, j := range jobs {
		if j.outcome != outcome {
			continue
		}
		events = append(events, historyEvent{at: j.finished, name: j.name})
		if !j.gone.IsZero() {
			events = append(events, historyEvent{at: j.gone, name: j.name, gone: true})
		}
	}
	slices.SortFunc(events, func(a, b historyEvent) int {
		return cmp.Or(a.at.Compare(b.at), -cmp.Compare(a.change(), b.change()))
	})
	return events
}

func (c cronJob) violation(format string, args ...any) violation {
	return violation{object: "CronJob " + c.name, lane: noLane, evidence: fmt.Sprintf(format, args...)}
}

// A schedule is the soak of examples/01_cronjob: the schedules are what happens.
type schedule struct {
	user   client.WithWatch
	every  time.Duration
	n      int
	record *jobRecord

	cronJobs []cronJob
}

func newSchedule(user client.WithWatch, o *options) subject {
	return &schedule{user: user, every: o.every, n: o.objects, record: newJobRecord()}
}

func (s *schedule) edits() []edit { return nil }

// create makes CronJobs with different history limits. The Jobs of every fifth one fail. Half of
// the CronJobs have the same times, and half of them different ones, so that a kill hits either
// many runs or, more often, at least one.
func (s *schedule) create(ctx context.Context) error {
	if err := s.record.follow(ctx, s.user); err != nil {
		return err
	}
	for i := range s.n {
		if i > s.n/2 {
			if err := sleepUntil(ctx, time.Now().Add(s.every/time.Duration(s.n))); err != nil {
				return err
			}
		}
		c := cronJob{name: fmt.Sprintf("soak-%02d", i), every: s.every, keepComplete: i % 4, keepFail: 1 + i%2, fails: i%5 == 4}
		obj := c.object()
		if err := s.user.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating CronJob %s: %w", c.name, err)
		}
		c.created = obj.CreationTimestamp.Time
		s.cronJobs = append(s.cronJobs, c)
	}
	return nil
}

func (c cronJob) object() *v1.CronJob {
	obj := &v1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.name}}
	obj.Spec.Schedule = "@every " + c.every.String()
	obj.Spec.SuccessfulJobsHistoryLimit, obj.Spec.FailedJobsHistoryLimit = new(int32(c.keepComplete)), new(int32(c.keepFail))
	job := &obj.Spec.JobTemplate.Spec
	job.BackoffLimit = new(int32(0))
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Template.Spec.Containers = []corev1.Container{{Name: "run", Image: "busybox"}}
	if c.fails {
		job.Template.Annotations = map[string]string{exitCode: "1"}
	}
	return obj
}

func (s *schedule) progress() string { return fmt.Sprintf("%d runs", s.record.count()) }

func (s *schedule) compare(ctx context.Context, steadySince time.Time) ([]check, error) {
	var list v1.CronJobList
	if err := s.user.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the CronJobs: %w", err)
	}
	if err := s.record.incomplete(); err != nil {
		return nil, err
	}
	objects := make(map[string]*v1.CronJob)
	for i := range list.Items {
		objects[list.Items[i].Name] = &list.Items[i]
	}
	now := time.Now()
	found := s.compareRuns(now)
	for _, c := range s.cronJobs {
		obj := objects[c.name]
		if obj == nil {
			found.add(checkReady, c.violation("it does not exist"))
			continue
		}
		if problem := (readiness{ready: true}).problem(obj.Status.Conditions, obj.Generation, steadySince); problem != "" {
			found.add(checkReady, c.violation("%s", problem))
		}
		if due := c.due(now.Add(-runGrace)); len(due) > 0 {
			if want, got := due[len(due)-1], obj.Status.LastScheduleTime; got == nil || got.Time.Before(want) {
				found.add("last schedule time", c.violation("status.lastScheduleTime is %v, want %s or later", got, clock(want)))
			}
		}
	}
	found.see(checkReady, "%d wrong; want True for %d", found.count(checkReady), len(s.cronJobs))
	return found.all, nil
}

// compareRuns compares the Jobs that there were with the schedules.
func (s *schedule) compareRuns(now time.Time) *checks {
	expected, kept, latest := 0, 0, time.Duration(0)
	found := newChecks("runs twice", "runs missed", "Jobs off the schedule", "Jobs not finished", "history limits", "last schedule time", checkReady)
	for _, c := range s.cronJobs {
		jobs := s.record.of(c.name)
		expected += len(c.due(now.Add(-runGrace)))
		found.add("runs twice", c.twice(jobs)...)
		found.add("runs missed", c.missed(jobs, now)...)
		found.add("Jobs off the schedule", c.astray(jobs)...)
		found.add("Jobs not finished", c.unfinished(jobs, now)...)
		history := c.history(jobs, now)
		if found.add("history limits", history...); len(history) == 0 {
			kept++
		}
		for _, j := range jobs {
			latest = max(latest, j.created.Sub(j.run))
		}
	}
	found.see("history limits", "kept by %d of %d", kept, len(s.cronJobs))
	found.all = append([]check{
		figure("runs expected", "%d", expected),
		figure("runs seen", "%d (with those of the last %s)", s.record.count(), runGrace),
		figure("latest start of a run", "%s after its time", latest),
	}, found.all...)
	return found
}

func (s *schedule) deleteAll(ctx context.Context) error {
	if err := s.user.DeleteAllOf(ctx, &v1.CronJob{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("deleting the CronJobs: %w", err)
	}
	return nil
}

// remaining returns the objects that the garbage collector should delete with the CronJobs.
func (s *schedule) remaining(ctx context.Context) ([]violation, error) {
	var found []violation
	for _, list := range []client.ObjectList{&v1.CronJobList{}, &batchv1.JobList{}, &corev1.PodList{}} {
		objects, err := listed(ctx, s.user, list)
		if err != nil {
			return nil, err
		}
		found = append(found, objects...)
	}
	return found, nil
}
