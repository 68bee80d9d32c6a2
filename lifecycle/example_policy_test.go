// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Bucket stands for the kind of an operator.
type Bucket = corev1.ReplicationController

// buckets stands for the client of an external system.
var buckets interface {
	Ensure(ctx context.Context, b *Bucket) error
	Delete(ctx context.Context, b *Bucket) error
}

// A bucketStep keeps a bucket outside the cluster, as far as policies allow.
type bucketStep struct{ defaults policy.Defaults }

func (s bucketStep) step() step.Step[*Bucket] {
	return step.Step[*Bucket]{
		Name: "Bucket", Do: s.do, Cleanup: s.cleanUp, Conditions: []condition.Declaration{{Type: "PolicyValid"}},
		Watches: func() []step.Watch { return lifecycle.PolicyWatches(s.defaults) },
	}
}

func (s bucketStep) do(ctx context.Context, req *step.Request[*Bucket]) error {
	decision, err := s.decide(ctx, req)
	if err != nil || !decision.Allows(policy.VerbCreate|policy.VerbUpdate) {
		return err
	}
	if err := req.EnsureFresh(ctx); err != nil {
		return err
	}
	if err := buckets.Ensure(ctx, req.Object); err != nil {
		return err
	}
	decision.Request().Acknowledge(policy.StatusOf(req.Object))
	return ctrlkit.RequeueWithin(time.Hour)
}

func (s bucketStep) cleanUp(ctx context.Context, req *step.Request[*Bucket]) error {
	decision, err := s.decide(ctx, req)
	if err != nil {
		return err
	}
	switch decision.OnDeletion() {
	case policy.DeletionDelete:
		return buckets.Delete(ctx, req.Object)
	case policy.DeletionDetach:
		return nil
	default:
		return failure.Mark(decision.Err(), failure.WithClass(failure.ClassTerminal),
			failure.WithReason(decision.Reason()), failure.WithRemedy(decision.Remedy()))
	}
}

// decide resolves the policy, and shows it in the condition.
func (s bucketStep) decide(ctx context.Context, req *step.Request[*Bucket]) (policy.Decision, error) {
	decision, err := lifecycle.ResolvePolicy(ctx, req.Client, req.Object, s.defaults)
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
	s := bucketStep{policy.Defaults{Reclaim: policy.ReclaimRetain}}.step()
	fmt.Println(s.Name)
	// Output: Bucket
}
