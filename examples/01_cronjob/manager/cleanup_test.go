// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

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

			w.must(cleanUp)
			same(t, "Jobs", tt.wantRemaining, w.jobNames())
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
	w.must(cleanUp)
	if got.PropagationPolicy == nil || *got.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("propagation policy %v, want Background", got.PropagationPolicy)
	}
	if got.Preconditions == nil || *got.Preconditions.UID != types.UID("uid-of-"+job1201) {
		t.Errorf("preconditions %v, want the UID of the Job", got.Preconditions)
	}
}

func TestCleanUpContinuesAfterAnError(t *testing.T) {
	w := newWorld(t, recordedUntil("2026-05-01T12:09:00Z"), func(c *v1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](0) })
	w.addJob("2026-05-01T12:00:00Z", finished(batchv1.JobComplete))
	w.addJob("2026-05-01T12:01:00Z", finished(batchv1.JobComplete))
	w.addJob("2026-05-01T12:02:00Z", finished(batchv1.JobComplete))
	down := errors.New("the API server is down")
	w.faults = interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
		switch obj.GetName() {
		case job1200: // another client was faster
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
	w.must(cleanUp)
	same(t, "Jobs", []string{job1202}, w.jobNames())
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
	w.must(cleanUp)
	w.wrote("patch status hello") // one Job is kept, and the other is on its way
}
