// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package step is an engine that reconciles one kind of object in named steps.
//
//	engine, err := step.New(step.Options[*v1.Simple]{Name: "simple", Client: mgr.GetClient()},
//		ensureNonZeroDivisor{},
//		step.Func("Divide", func(ctx context.Context, req *step.Request[*v1.Simple]) (ctrl.Result, error) {
//			spec := &req.Object.Spec
//			req.Object.Status.Quotient = ptr.To(spec.Dividend / spec.Divisor)
//			return ctrlkit.NoRequeue()
//		}),
//	)
//	...
//	err = engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&v1.Simple{}))
//
// The engine loads the object, keeps its finalizer if a step has something to clean up, runs Do of
// each step or, when the object is being deleted, Cleanup in reverse order, then Post of each,
// computes the conditions, and writes what has changed: besides the finalizer at most one patch of
// the metadata and one of the status, none when nothing has changed. A step changes Request.Object
// and leaves the writing to the engine.
//
// An [Engine] is a reconcile.Reconciler. What a step does inside is the user's: plain code, or a
// workflow of package ctrlkit. Children are written through Request.Client.
package step
