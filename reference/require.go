// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// Require returns a step that awaits references and records their uses, for engines without
// [external.Options.References]: the steps after it run when all can be used, and find what an object
// refers to with [Reference.Get].
//
// A use lasts until the object is gone or refers to another one. A change of what an object refers to
// ends the old use when the object is ready with the new one; without conditions, when no step has
// failed.
func Require[T client.Object](references ...Of[T]) step.Step[T] {
	all := require[T](references)
	s := step.Step[T]{Name: "References", Do: all.await, Post: all.settleUnshown, Watches: all.watches}
	for _, r := range references {
		s.Conditions = append(s.Conditions, r.Conditions()...)
		s.Uses = append(s.Uses, r.Uses()...)
	}
	return s
}

type require[T client.Object] []Of[T]

func (all require[T]) watches() []step.Watch {
	var watches []step.Watch
	for _, r := range all {
		watches = append(watches, r.Watches()...)
	}
	return watches
}

// await waits for the references, and records their uses.
func (all require[T]) await(ctx context.Context, req *step.Request[T]) error {
	for _, call := range []func(r Of[T]) error{
		func(r Of[T]) error { return r.Await(ctx, req) },
		func(Of[T]) error { return req.Save(ctx) },
		func(r Of[T]) error { return r.Hold(ctx, req) },
	} {
		var errs []error
		for _, r := range all {
			errs = append(errs, call(r))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	if isReady(req.Snapshot()) {
		all.settle(req)
	}
	return nil
}

// isReady reports whether an object was ready in the generation that it has.
func isReady(obj client.Object) bool {
	conditions, err := condition.Of(obj)
	ready := meta.FindStatusCondition(conditions, condition.Ready)
	return err == nil && ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == obj.GetGeneration()
}

func (all require[T]) settle(req *step.Request[T]) {
	for _, r := range all {
		r.Settle(req)
	}
}

// settleUnshown ends the former uses of an object that has no conditions to show that it is ready.
func (all require[T]) settleUnshown(_ context.Context, req *step.Request[T]) error {
	if req.Conditions == nil && req.Failure() == nil && req.Object.GetDeletionTimestamp().IsZero() {
		all.settle(req)
	}
	return nil
}
