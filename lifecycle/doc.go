// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle reconciles objects that stand for something which is made, kept and removed: a
// database user, a bucket, a record. It is a step of package step, so that an operator writes what
// is its own, and nothing around it:
//
//	type users struct{ databases Databases }
//
//	type request = step.Request[*v1.User]
//
//	func (u users) CreateOrUpdate(ctx context.Context, req *request) error {
//		return u.databases.EnsureUser(ctx, req.Object.Spec.Name)
//	}
//
//	func (u users) Delete(ctx context.Context, req *request) error {
//		return u.databases.DropUser(ctx, req.Object.Spec.Name)
//	}
//
//	user := lifecycle.New("User", users{databases}, lifecycle.Options{Operator: "prod/mysql"})
//	engine, err := step.New(options, user)
//
// What it does for each kind in the same way:
//
//   - An object that another installation of the operator has claimed is left alone.
//   - The claim of the object and its finalizer are written, in one patch, before anything is
//     made.
//   - It is decided whether the object is made or removed, and whether its policy allows that: see
//     package policy.
//   - An object that was never claimed, as a [Claimer] reports it, is deleted without a call.
//   - A request to reconcile now is acknowledged.
//   - What the methods return becomes the condition Ready, with a reason, a severity and a
//     backoff: see package failure. What has changed of the object is written once, by the engine.
package lifecycle
