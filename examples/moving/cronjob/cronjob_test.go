// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cronjob_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// What kubebuilder scaffolds for a controller: Reconcile is called, and returns no error.
func TestReconcile(t *testing.T) {
	forStages(t, func(t *testing.T, s stage) {
		w := newWorld(t)
		r := w.reconcilerOf(s, &clock{time.Now()})
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}

		if len(w.cronJob().Status.Conditions) == 0 {
			t.Error("there are no conditions")
		}
	})
}

// What the test of the tutorial checks, with the controller in a manager: conditions, a Job of the
// CronJob in the status, and the limits of the history.
func TestController(t *testing.T) {
	rings.Test(t, "simulates each stage")
	forStages(t, func(t *testing.T, s stage) {
		w := newWorld(t)
		w.must(s.of(w.mgr.GetClient(), w.mgr.GetScheme(), nil).SetupWithManager(w.mgr))
		w.start()
		w.must(w.client.Create(t.Context(), newCronJob()))
		w.settle()
		cronJob := w.cronJob()
		if len(cronJob.Status.Conditions) == 0 || len(cronJob.Status.Active) > 0 {
			t.Errorf("after the creation: %+v", cronJob.Status)
		}

		w.createJob("active", cronJob)
		w.settle()
		cronJob = w.cronJob()
		if active := cronJob.Status.Active; len(active) != 1 || active[0].Name != "active" {
			t.Errorf("the active Jobs are %+v", active)
		}
		wantCondition(t, cronJob, "Available", metav1.ConditionTrue, "JobsActive")
		wantCondition(t, cronJob, "Progressing", metav1.ConditionTrue, "JobsActive")

		cronJob.Spec.FailedJobsHistoryLimit, cronJob.Spec.SuccessfulJobsHistoryLimit = new(int32(1)), new(int32(1))
		w.must(w.client.Update(t.Context(), cronJob))
		for _, job := range []struct {
			name string
			as   batchv1.JobConditionType
		}{{"complete-1", batchv1.JobComplete}, {"complete-2", batchv1.JobComplete}, {"failed-1", batchv1.JobFailed}, {"failed-2", batchv1.JobFailed}} {
			w.createJob(job.name, cronJob)
			w.settle()
			w.finish(job.name, job.as)
			w.settle()
		}
		if diff := cmp.Diff([]string{"active", "complete-2", "failed-2"}, w.jobs()); diff != "" {
			t.Errorf("Jobs (-want +got)\n%s", diff)
		}
		wantCondition(t, w.cronJob(), "Available", metav1.ConditionFalse, "JobsFailed")
		wantCondition(t, w.cronJob(), "Degraded", metav1.ConditionTrue, "JobsFailed")
	})
}

// createJob creates an active Job that belongs to a CronJob and was not created by the operator.
func (w *world) createJob(name string, cronJob *v1.CronJob) {
	w.t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cronJob, v1.GroupVersion.WithKind("CronJob"))},
		},
		Spec: newJobSpec(),
	}
	w.must(w.client.Create(w.t.Context(), job))
	job.Status.Active, job.Status.StartTime = 2, &metav1.Time{Time: time.Now()}
	w.must(w.client.Status().Update(w.t.Context(), job))
}

func wantCondition(t *testing.T, cronJob *v1.CronJob, conditionType string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	if c := meta.FindStatusCondition(cronJob.Status.Conditions, conditionType); c == nil || c.Status != status || c.Reason != reason {
		t.Errorf("the condition %s is %+v, want %s, %s", conditionType, c, status, reason)
	}
}

// midnight is when the virtual time begins.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// The names of Jobs have the time of the schedule: one o'clock, and so on.
const atOne, atTwo, atThree = "hello-946688400", "hello-946692000", "hello-946695600"

// A visit is a reconcile at a time, and what it leads to.
type visit struct {
	at     string // "15:04"
	finish string // this Job is complete before
	again  time.Duration
	jobs   []string
	active []string
}

var scheduleTests = []struct {
	name   string
	change func(spec *v1.CronJobSpec)
	visits []visit
}{
	{"a Job at each time", func(*v1.CronJobSpec) {}, []visit{
		{at: "00:30", again: 30 * time.Minute},
		{at: "01:00", again: time.Hour, jobs: []string{atOne}, active: []string{atOne}},
		{at: "01:20", again: 40 * time.Minute, jobs: []string{atOne}, active: []string{atOne}},
		{at: "02:10", again: 50 * time.Minute, jobs: []string{atOne, atTwo}, active: []string{atOne, atTwo}},
		{at: "02:20", finish: atOne, again: 40 * time.Minute, jobs: []string{atOne, atTwo}, active: []string{atTwo}},
	}},
	{"of several missed runs, the latest", func(*v1.CronJobSpec) {}, []visit{
		{at: "03:10", again: 50 * time.Minute, jobs: []string{atThree}, active: []string{atThree}},
		{at: "03:20", again: 40 * time.Minute, jobs: []string{atThree}, active: []string{atThree}},
	}},
	{"a run that is too late", func(spec *v1.CronJobSpec) { spec.StartingDeadlineSeconds = new(int64(90)) }, []visit{
		{at: "01:10", again: 50 * time.Minute},
		{at: "02:01", again: 59 * time.Minute, jobs: []string{atTwo}, active: []string{atTwo}},
	}},
	{"suspended", func(spec *v1.CronJobSpec) { spec.Suspend = new(true) }, []visit{{at: "01:00"}}},
	{"Forbid", func(spec *v1.CronJobSpec) { spec.ConcurrencyPolicy = v1.ForbidConcurrent }, []visit{
		{at: "01:00", again: time.Hour, jobs: []string{atOne}, active: []string{atOne}},
		{at: "02:00", again: time.Hour, jobs: []string{atOne}, active: []string{atOne}},
		{at: "02:10", finish: atOne, again: 50 * time.Minute, jobs: []string{atOne, atTwo}, active: []string{atTwo}},
	}},
	{"Replace", func(spec *v1.CronJobSpec) { spec.ConcurrencyPolicy = v1.ReplaceConcurrent }, []visit{
		{at: "01:00", again: time.Hour, jobs: []string{atOne}, active: []string{atOne}},
		{at: "02:00", again: time.Hour, jobs: []string{atTwo}, active: []string{atTwo}},
	}},
	{"no schedule", func(spec *v1.CronJobSpec) { spec.Schedule = "soon" }, []visit{{at: "01:00"}}},
}

// The times at which Jobs are created, by the clock of the reconciler.
func TestSchedule(t *testing.T) {
	rings.Test(t, "simulates each stage")
	for _, tt := range scheduleTests {
		t.Run(tt.name, func(t *testing.T) {
			forStages(t, func(t *testing.T, s stage) {
				w := newWorld(t)
				now := &clock{}
				r := w.reconcilerOf(s, now, tt.change)
				for _, v := range tt.visits {
					w.visit(r, now, v)
				}
			})
		})
	}
}

func (w *world) visit(r reconciler, now *clock, v visit) {
	w.t.Helper()
	at, err := time.Parse("15:04", v.at)
	w.must(err)
	now.now = midnight.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
	if v.finish != "" {
		w.finish(v.finish, batchv1.JobComplete)
		w.settle()
	}
	again := w.reconcile(r)
	if again.RequeueAfter != v.again {
		w.t.Errorf("%s: reconciled again after %s, want %s", v.at, again.RequeueAfter, v.again)
	}
	if jobs := w.jobs(); !slices.Equal(jobs, v.jobs) {
		w.t.Errorf("%s: the Jobs are %v, want %v", v.at, jobs, v.jobs)
	}
	w.reconcile(r) // as the watch of Jobs has it
	var active []string
	for _, ref := range w.cronJob().Status.Active {
		active = append(active, ref.Name)
	}
	if slices.Sort(active); !slices.Equal(active, v.active) {
		w.t.Errorf("%s: the active Jobs are %v, want %v", v.at, active, v.active)
	}
}

// reconcile reconciles the CronJob, and lets the cache learn of it.
func (w *world) reconcile(r reconciler) reconcile.Result {
	w.t.Helper()
	result, err := r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
	w.must(err)
	w.settle()
	return result
}

// A reconciler that finds the last run by its Job runs it again when the limit of the history is 0.
func TestARunIsNotRepeated(t *testing.T) {
	forStages(t, func(t *testing.T, s stage) {
		w := newWorld(t)
		r := w.reconcilerOf(s, &clock{midnight.Add(time.Hour)}, keepsNone)
		w.reconcile(r)
		w.finish(atOne, batchv1.JobComplete)
		w.settle()
		w.reconcile(r) // deletes the Job
		w.reconcile(r)
		repeated := len(w.jobs()) > 0
		if want := s.name == "before" || s.name == "onestep"; repeated != want {
			t.Errorf("the run is repeated: %t, want %t", repeated, want)
		}
	})
}

// A run that can't be started keeps no old Job, where the two do not depend on each other. In a
// sequence of steps they do.
func TestOldJobsAreDeletedAlthoughNoneCanBeCreated(t *testing.T) {
	forStages(t, func(t *testing.T, s stage) {
		w := newWorld(t)
		now := &clock{midnight.Add(time.Hour)}
		r := w.reconcilerOf(s, now, keepsNone)
		w.reconcile(r)
		w.finish(atOne, batchv1.JobComplete)
		w.settle()
		now.now, w.full = midnight.Add(2*time.Hour), true
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !errors.Is(err, errFull) {
			t.Errorf("got error %v, want %v", err, errFull)
		}
		kept := len(w.jobs()) > 0
		if want := s.name == "steps" || s.name == "children"; kept != want {
			t.Errorf("the old Job is kept: %t, want %t", kept, want)
		}
	})
}

// A Job of another owner is not the Job of a run, although it has its name. Stage steps does not look.
func TestAForeignJobIsNotTheRun(t *testing.T) {
	forStages(t, func(t *testing.T, s stage) {
		w := newWorld(t)
		w.must(w.client.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: atOne}, Spec: newJobSpec()}))
		r := w.reconcilerOf(s, &clock{midnight.Add(time.Hour)})
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if refused, want := err != nil, s.name != "steps"; refused != want {
			t.Errorf("got error %v, want one: %t", err, want)
		}
	})
}

// The guide says how many lines of code each stage has.
func TestLinesInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/moving.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stages {
		source, err := os.ReadFile(s.name + "/controller.go")
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(source)) {
			if line := strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
		row := fmt.Sprintf("| [`%s`](../examples/moving/cronjob/%s/controller.go) | %d lines |", s.name, s.name, lines)
		if !strings.Contains(string(guide), row) {
			t.Errorf("the guide does not have: %s", row)
		}
	}
}
