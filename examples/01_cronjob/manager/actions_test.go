// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// The workflows of these tests: one action, and the write of the status.

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

func TestNothingIsDoneWithoutTheState(t *testing.T) {
	w := newWorld(t)
	w.now = at("2026-05-01T12:01:00Z")
	wantErr := errors.New("the cache is closed")
	_, err := w.reconcile(func() *CronJobControllerManagerFakeState { return &CronJobControllerManagerFakeState{JobsErr: wantErr} }, runNext)
	if !errors.Is(err, wantErr) {
		t.Errorf("got error %v, want %v", err, wantErr)
	}
	w.wrote("patch status hello") // which says what has failed
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
	w.wrote("patch status hello") // in three tries
}

func TestAMistakeInTheSpecIsReportedAndNotRetried(t *testing.T) {
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
	w.wrote("patch status hello")
}

func TestSuspendedIsReady(t *testing.T) {
	w := newWorld(t, func(c *v1.CronJob) { c.Spec.Suspend = ptr.To(true) })
	w.must(updateStatus)
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
		t.Errorf("got error %v, want a requeue without one", err)
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
