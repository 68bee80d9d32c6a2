// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"

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

	w.must(listActive)
	status := w.status()
	same(t, "active, in the order of names", []string{job1201, job1202}, refNames(status.Active))
	want := corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: job1201, UID: "uid-of-" + job1201}
	same(t, "reference", want, status.Active[0])
	// The operator may have died after it created the Job of 12:02 and before it wrote that down.
	w.scheduledLast("2026-05-01T12:02:00Z")
}

func TestTheStatusDoesNotDependOnTheOrderOfTheCache(t *testing.T) {
	w := newWorld(t)
	w.addJob("2026-05-01T12:01:00Z")
	w.addJob("2026-05-01T12:02:00Z")
	for range 2 {
		w.must(listActive)
		w.refresh()
		slices.Reverse(w.jobs)
	}
	w.wrote("patch status hello")
}

func TestLastScheduleTimeNeverGoesBack(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) {
		c.Status.LastScheduleTime = &metav1.Time{Time: at("2026-05-01T12:05:00Z")}
	})
	w.addJob("2026-05-01T12:01:00Z")
	w.must(listActive)
	w.scheduledLast("2026-05-01T12:05:00Z")
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
			w.must(listActive)
			w.refresh()
			w.jobs = nil
			tt.change(t, w)
			w.must(listActive)
			same(t, "active", tt.want, refNames(w.status().Active))
		})
	}
}
