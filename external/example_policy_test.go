// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Deposit stands for the kind of an operator.
type Deposit = corev1.ReplicationController

// deposits stands for the client of an external system.
var deposits interface {
	Ensure(ctx context.Context, d *Deposit) error
	Delete(ctx context.Context, d *Deposit) error
}

// A depositStep keeps a deposit outside the cluster, as far as policies allow.
type depositStep struct{ defaults policy.Defaults }

func (s depositStep) step() step.Step[*Deposit] {
	return step.Step[*Deposit]{
		Name: "Deposit", Do: s.do, Cleanup: s.cleanUp, Conditions: []condition.Declaration{{Type: "PolicyValid"}},
		Watches: func() []step.Watch { return external.PolicyWatches(s.defaults) },
	}
}

func (s depositStep) do(ctx context.Context, req *step.Request[*Deposit]) error {
	decision, err := s.decide(ctx, req)
	if err != nil || !decision.Allows(policy.VerbCreate|policy.VerbUpdate) {
		return err
	}
	if err := req.EnsureFresh(ctx); err != nil {
		return err
	}
	if err := deposits.Ensure(ctx, req.Object); err != nil {
		return err
	}
	decision.Request().Acknowledge(policy.StatusOf(req.Object))
	return ctrlkit.RequeueWithin(time.Hour)
}

func (s depositStep) cleanUp(ctx context.Context, req *step.Request[*Deposit]) error {
	decision, err := s.decide(ctx, req)
	if err != nil {
		return err
	}
	switch decision.OnDeletion() {
	case policy.DeletionDelete:
		return deposits.Delete(ctx, req.Object)
	case policy.DeletionDetach:
		return nil
	default:
		return failure.Mark(decision.Err(), failure.WithClass(failure.ClassTerminal),
			failure.WithReason(decision.Reason()), failure.WithRemedy(decision.Remedy()))
	}
}

// decide resolves the policy, and shows it in the condition.
func (s depositStep) decide(ctx context.Context, req *step.Request[*Deposit]) (policy.Decision, error) {
	decision, err := external.ResolvePolicy(ctx, req.Client, req.Object, s.defaults)
	switch {
	case err != nil:
		return decision, err
	case decision.Err() != nil:
		req.Conditions.MarkUnhealthy("PolicyValid", condition.SeverityError, decision.Reason(), decision.Message())
	default:
		req.Conditions.MarkHealthy("PolicyValid", decision.Reason(), decision.Message())
	}
	return decision, nil
}

// A step that keeps something outside the cluster asks what it may do, and shows the answer.
func ExampleResolvePolicy() {
	s := depositStep{policy.Defaults{Reclaim: policy.ReclaimRetain}}.step()
	fmt.Println(s.Name)
	// Output: Deposit
}
