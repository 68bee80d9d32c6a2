// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
)

var errQuota = errors.New("quota exceeded")

func TestOutcomes(t *testing.T) {
	wrapped := func() (ctrl.Result, error) {
		return ctrl.Result{}, fmt.Errorf("reading credentials: %w", ctrlkit.Wait("a secret"))
	}
	for _, test := range []struct {
		name    string
		outcome func() (ctrl.Result, error)
		want    diagram.Outcome
		text    string
	}{
		{"done", ctrlkit.NoRequeue, diagram.Outcome{State: diagram.StateDone}, "done"},
		{"exit", ctrlkit.Exit, diagram.Outcome{State: diagram.StateExited}, "ended the workflow"},
		{
			"requeue", func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(90 * time.Minute) },
			diagram.Outcome{State: diagram.StateRequeued, RequeueAfter: 90 * time.Minute}, "requeues after 1h30m",
		},
		{"at once", ctrlkit.RequeueImmediately, diagram.Outcome{State: diagram.StateRequeued, RequeueAfter: 1}, "requeues at once"},
		{
			"continue and requeue", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(2 * time.Hour) },
			diagram.Outcome{State: diagram.StateDone, RequeueAfter: 2 * time.Hour}, "done, requeues within 2h",
		},
		{
			"wait", wrapped,
			diagram.Outcome{State: diagram.StateWaiting, Waits: []ctrlkit.Waiting{{Action: "A", For: "a secret"}}}, "waits for a secret",
		},
		{
			"poll", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Poll("a bucket", 10*time.Second) },
			diagram.Outcome{State: diagram.StateWaiting, RequeueAfter: 10 * time.Second, Waits: []ctrlkit.Waiting{{Action: "A", For: "a bucket", Every: 10 * time.Second}}},
			"waits for a bucket (polls every 10s)",
		},
		{"error", func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(errQuota) }, diagram.Outcome{State: diagram.StateFailed, Err: errQuota}, "failed: quota exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var recorder diagram.Recorder
			_, _ = action("A", test.outcome).Run(ctrlkit.ContextWithHook(t.Context(), &recorder)) // what it returns is recorded
			test.want.Action, test.want.Runs = "A", 1
			got := recorder.Outcomes()
			if diff := cmp.Diff(diagram.Outcomes{test.want}, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if text := recorder.Outcome("A"); text != test.text {
				t.Errorf("in words: %q, want %q", text, test.text)
			}
		})
	}
}

func TestOutcomesWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder diagram.Recorder
		release := make(chan struct{})
		slow := ctrlkit.NewAction("Slow", func(context.Context) (ctrl.Result, error) {
			<-release
			return ctrlkit.NoRequeue()
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = ctrlkit.Sequential(slow, action("Next", ctrlkit.NoRequeue)).Run(ctrlkit.ContextWithHook(t.Context(), &recorder))
		}()
		synctest.Wait()
		if got := recorder.Outcomes(); recorder.Outcome("Slow") != "running" || recorder.Outcome("Next") != "not run" {
			t.Errorf("while Slow is running: %v, want it running and Next not run", got)
		}
		close(release)
		<-done
		if got := recorder.Outcomes(); recorder.Outcome("Slow") != "done" || recorder.Outcome("Next") != "done" {
			t.Errorf("at the end: %v, want both done", got)
		}
	})
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	var recorder diagram.Recorder
	ctx := ctrlkit.ContextWithHook(t.Context(), &recorder)
	var group sync.WaitGroup
	const runs = 50
	for range runs {
		group.Go(func() {
			_, _ = ctrlkit.ParallelJoin(action("A", ctrlkit.NoRequeue), action("B", ctrlkit.Exit)).Run(ctx) // what it returns is recorded
			_ = recorder.Outcomes()
		})
	}
	group.Wait()
	got := recorder.Outcomes()
	for _, o := range got {
		if o.Runs != runs || len(got) != 2 {
			t.Errorf("%s ran %d times, want %d, and A and B to be recorded: %v", o.Action, o.Runs, runs, got)
		}
	}
	recorder.Reset()
	if got := recorder.Outcomes(); len(got) > 0 {
		t.Errorf("after Reset: %v, want nothing", got)
	}
}
