// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package step is an engine that reconciles one kind of object in named steps.
//
//	type request = step.Request[*v1.Simple]
//
//	engine, err := step.New(step.Options[*v1.Simple]{Name: "simple", Client: mgr.GetClient()},
//		nonZeroDivisor,
//		step.Step[*v1.Simple]{Name: "Divide", Do: func(_ context.Context, req *request) error {
//			spec := &req.Object.Spec
//			req.Object.Status.Quotient = ptr.To(spec.Dividend / spec.Divisor)
//			return nil
//		}},
//	)
//	...
//	err = engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&v1.Simple{}))
//
// A reconcile of the engine reads from top to bottom:
//
//   - The object is read from the cache. Gates may end the reconcile here: the cache is stale,
//     nothing has changed, the object is paused.
//   - If a step has something to clean up, the object is given the finalizer.
//   - Do of each step is run or, when the object is being deleted, Cleanup in reverse order. Then
//     comes Post of each.
//   - The conditions are computed.
//   - What has changed is written: besides the finalizer at most one patch of the metadata and one
//     of the status, none when nothing has changed.
//
// A step changes Request.Object and leaves the writing to the engine. Children are written through
// Request.Client. What a step does inside is up to you: plain code, or a workflow of package
// ctrlkit. An [Engine] is a reconcile.Reconciler.
package step
