// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// The Go of the README stands here too, so that it is compiled; TestGuides compares the two.

func reconcileCronJob(ctx context.Context, suspended bool, mgr manager) (ctrl.Result, error) {
	workflow := ctrlkit.Finally(
		ctrlkit.Join(
			// Clean up, whatever else fails.
			mgr.CleanUpOldJobs(),
			ctrlkit.Sequential(
				mgr.ListActiveJobs(),
				ctrlkit.If(!suspended, ctrlkit.Timeout(10*time.Second, mgr.RunNextJob())),
			),
		),
		// Always: also after an error, a panic or a wait.
		mgr.UpdateStatus(),
	)
	return ctrlkit.IgnoreExit(workflow.Run(ctx))
}

func (impl) CheckSecret(_ context.Context, _ logr.Logger, secret *corev1.Secret) (ctrl.Result, error) {
	if secret == nil {
		return ctrl.Result{}, ctrlkit.Wait("Secret default/db") // no error, and no backoff: a watch ends it
	}
	return ctrlkit.NoRequeue()
}

func control(mgr ctrl.Manager) error {
	return step.Control(mgr, step.Options[*Simple]{Name: "simple"},
		step.Step[*Simple]{Name: "EnsureNonZeroDivisor", Do: ensureNonZeroDivisor},
		step.Step[*Simple]{Name: "Divide", Do: func(_ context.Context, req *step.Request[*Simple]) error {
			spec, status := req.Object.Spec, &req.Object.Status
			status.Quotient, status.Remainder = new(spec.Dividend/spec.Divisor), new(spec.Dividend%spec.Divisor)
			return nil
		}},
	)
}

// Simple is that of examples/02_simple, which is another module.
type Simple struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   struct{ Dividend, Divisor int64 }
	Status struct{ Quotient, Remainder *int64 }
}

func (s *Simple) DeepCopyObject() runtime.Object {
	c := *s
	c.ObjectMeta = *s.ObjectMeta.DeepCopy()
	return &c
}

func ensureNonZeroDivisor(_ context.Context, req *step.Request[*Simple]) error {
	if req.Object.Spec.Divisor == 0 {
		return ctrlkit.ErrExit
	}
	return nil
}

var _ = control // it is compiled, and examples/02_simple runs it

type impl struct{}

// manager stands for a generated one.
type manager struct{ *journal }

func (m manager) CleanUpOldJobs() ctrlkit.Action { return m.fails("CleanUpOldJobs") }
func (m manager) ListActiveJobs() ctrlkit.Action { return m.ok("ListActiveJobs") }
func (m manager) RunNextJob() ctrlkit.Action     { return m.waits("RunNextJob") }
func (m manager) UpdateStatus() ctrlkit.Action   { return m.ok("UpdateStatus") }

func TestReadmeWorkflow(t *testing.T) {
	var j journal
	_, err := reconcileCronJob(background(), false, manager{&j})
	if text(err) != "CleanUpOldJobs: boom" {
		t.Error(err)
	}
	j.want(t, "CleanUpOldJobs", "ListActiveJobs", "RunNextJob", "UpdateStatus")
	if _, err := (impl{}).CheckSecret(background(), logr.Discard(), nil); !errors.Is(err, ctrlkit.ErrExit) {
		t.Error(err)
	}
}
