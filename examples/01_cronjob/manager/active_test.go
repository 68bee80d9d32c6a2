// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
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

// A Job that the status lists as active and the cache does not have is either too new for the
// cache, or it was deleted.
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
