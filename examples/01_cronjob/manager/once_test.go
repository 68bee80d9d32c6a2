// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// The cache does not know the Job of the last run yet, and the status says that there is one.
func TestForbidHoldsWhileTheCacheIsStale(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = v1.ForbidConcurrent })
	w.now = at("2026-05-01T12:01:00Z")
	w.must(runNext)
	w.refresh()
	w.jobs = nil
	w.now = at("2026-05-01T12:02:00Z")
	if _, err := ctrlkit.IgnoreExit(w.run(runNext)); err != nil {
		t.Fatal(err)
	}
	same(t, "Jobs", []string{job1201}, w.jobNames())
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
			same(t, "Jobs", []string(nil), w.jobNames())
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
	w.must(runNext)
	same(t, "Jobs", []string{job1201}, w.jobNames())
	status := w.status()
	w.scheduledLast("2026-05-01T12:01:00Z")
	same(t, "active", []string{job1201}, refNames(status.Active))
}

func TestAJobThatTheUserDeletedIsNotStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:00Z")
	w.must(runNext)
	if err := w.api.Delete(t.Context(), &w.clusterJobs()[0]); err != nil {
		t.Fatal(err)
	}
	w.refresh()
	w.now = at("2026-05-01T12:01:59Z")
	w.must(runNext)
	if got := w.jobNames(); len(got) != 0 {
		t.Errorf("Jobs %q, want none", got)
	}
}

func TestAJobOfAnotherOwnerHasTheName(t *testing.T) {
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
