// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctrlkit is the vocabulary of workflows: small actions, combined into what one reconcile
// does.
//
// An [Action] does one thing. Combinators such as [Sequential], [Join], [Graph] and [Finally] build
// bigger actions from smaller ones, and what the parts return is joined into one result by fixed
// rules:
//
//	workflow := ctrlkit.Finally(
//		ctrlkit.Join(
//			mgr.CleanUpOldJobs(),
//			ctrlkit.If(!suspended, mgr.RunNextScheduledJob()),
//		),
//		mgr.UpdateStatus(), // also after an error, a panic or a wait
//	)
//	return ctrlkit.IgnoreExit(workflow.Run(ctx))
//
// An action ends with one of the outcomes of this package: [NoRequeue], [RequeueAfter],
// [RequeueIfError], [Exit], [Wait] and similar. Joining keeps every cause, and the next
// reconcile never comes later than any of the parts asked for.
//
// # Rules of joining
//
// Two outcomes are joined like this; the order of the operands does not matter but for the order of
// the causes in the text:
//
//   - nil joined with an error is that error; two errors become one that holds both, for errors.Is
//     and errors.As too;
//   - Result.Requeue is or-ed;
//   - Result.RequeueAfter is the shortest that is not zero; a negative one means at once;
//   - Result.Priority is the highest that is set;
//   - an error that wraps a terminal one (reconcile.TerminalError) is terminal only if nothing
//     beside it asks for another reconcile: no other error, no wait, no time and no requeue.
//
// # What it leaves to others
//
// The package neither reads nor writes the cluster and keeps nothing between two reconciles: every
// run starts at the root of the workflow and observes the cluster anew. Build the workflow for each
// reconcile, as generated managers do. Finalizers, conditions and saving the object belong to
// package step.
package ctrlkit

// SupportsGeneratedV1 is referenced by generated code, so that code from a generator that is too
// new or too old for this library does not compile. To fix that, use the generator of the version
// of this module in your go.mod: go tool ctrlkit generate.
const SupportsGeneratedV1 = true
