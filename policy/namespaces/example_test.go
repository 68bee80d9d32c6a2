// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package namespaces_test

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/policy/namespaces"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Bucket stands for the kind of an operator.
type Bucket = corev1.ReplicationController

// buckets stands for the client of an external system.
var buckets interface {
	Observe(ctx context.Context, b *Bucket) (exists, drifted bool, err error)
	Create(ctx context.Context, b *Bucket) error
	Update(ctx context.Context, b *Bucket) error
	Delete(ctx context.Context, b *Bucket) error
}

// A bucketStep keeps a bucket outside the cluster, as far as policies allow.
type bucketStep struct{ defaults policy.Defaults }

func (bucketStep) Name() string { return "Bucket" }

func (bucketStep) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: "PolicyValid"}}
}

func (s bucketStep) Watches() []step.Watch { return namespaces.Watches(s.defaults) }

func (s bucketStep) Do(ctx context.Context, req *step.Request[*Bucket]) (ctrl.Result, error) {
	decision, err := s.decide(ctx, req)
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	if err := req.EnsureFresh(ctx); err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	request := policy.RequestOf(req.Object)
	exists, drifted, err := buckets.Observe(ctx, req.Object)
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	request.Acknowledge(policy.StatusOf(req.Object))
	switch {
	case !exists && decision.Allows(policy.VerbCreate):
		err = buckets.Create(ctx, req.Object)
	case exists && drifted && decision.Allows(policy.VerbUpdate):
		err = buckets.Update(ctx, req.Object)
	}
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	return ctrlkit.ContinueAndRequeueAfter(time.Hour)
}

func (s bucketStep) Cleanup(ctx context.Context, req *step.Request[*Bucket]) (ctrl.Result, error) {
	decision, err := s.decide(ctx, req)
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	switch decision.OnDeletion() {
	case policy.DeletionDelete:
		return ctrlkit.RequeueIfError(buckets.Delete(ctx, req.Object))
	case policy.DeletionDetach:
		return ctrlkit.NoRequeue()
	default:
		return ctrlkit.RequeueIfError(failure.Mark(decision.Err(), failure.WithClass(failure.ClassTerminal),
			failure.WithReason(decision.Reason()), failure.WithRemedy(decision.Remedy())))
	}
}

// decide resolves the policy, and shows it in the condition.
func (s bucketStep) decide(ctx context.Context, req *step.Request[*Bucket]) (policy.Decision, error) {
	decision, err := namespaces.Resolve(ctx, req.Client, req.Object, s.defaults)
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

var (
	_ step.Cleaner[*Bucket]           = bucketStep{}
	_ step.Watcher[*Bucket]           = bucketStep{}
	_ step.ConditionDeclarer[*Bucket] = bucketStep{}
)

// A step that keeps something outside the cluster asks what it may do, and shows the answer.
func Example() {
	var defaults policy.Defaults
	flag.Func("reclaim", "what becomes of buckets whose objects are deleted: delete or retain", func(text string) (err error) {
		defaults.Reclaim, err = policy.ParseReclaim(text)
		return err
	})
	flag.Parse()
	engine, err := step.New(step.Options[*Bucket]{Name: "bucket"}, bucketStep{defaults})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(engine.Finalizer())
}
