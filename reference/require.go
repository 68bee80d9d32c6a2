// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

// Require returns a step that awaits references and records their uses, for engines without
// [external.Options.References]: the steps after it run when all can be used, and find what an object
// refers to with [Reference.Get].
//
// A use lasts until the object is gone or refers to another one. A change of what an object refers to
// ends the old use when the object is ready with the new one; without conditions, when no step has
// failed.
func Require[T client.Object](references ...Of[T]) step.Step[T] { return require[T](references) }

type require[T client.Object] []Of[T]

var (
	_ step.Watcher[client.Object]           = require[client.Object](nil)
	_ step.UseDeclarer[client.Object]       = require[client.Object](nil)
	_ step.PostStep[client.Object]          = require[client.Object](nil)
	_ step.ConditionDeclarer[client.Object] = require[client.Object](nil)
)

// Name implements [step.Step].
func (require[T]) Name() string { return "References" }

// Conditions implements [step.ConditionDeclarer].
func (all require[T]) Conditions() []condition.Declaration {
	var declared []condition.Declaration
	for _, r := range all {
		declared = append(declared, r.Conditions()...)
	}
	return declared
}

// Watches implements [step.Watcher].
func (all require[T]) Watches() []step.Watch {
	var watches []step.Watch
	for _, r := range all {
		watches = append(watches, r.Watches()...)
	}
	return watches
}

// Do implements [step.Step].
func (all require[T]) Do(ctx context.Context, req *step.Request[T]) (ctrl.Result, error) {
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
			return ctrlkit.RequeueIfError(err)
		}
	}
	if isReady(req.Snapshot()) {
		all.settle(req)
	}
	return ctrlkit.NoRequeue()
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

// Uses implements [step.UseDeclarer].
func (all require[T]) Uses() []permission.Use {
	var uses []permission.Use
	for _, r := range all {
		uses = append(uses, r.Uses()...)
	}
	return uses
}

// Post implements [step.PostStep].
func (all require[T]) Post(_ context.Context, req *step.Request[T]) error {
	if req.Conditions == nil && req.Failure() == nil && req.Object.GetDeletionTimestamp().IsZero() {
		all.settle(req)
	}
	return nil
}
