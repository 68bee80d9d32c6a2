// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what an operator may do for an object. Users say so in annotations of the
// object or of its namespace, and who installs the operator says what holds without them:
//
//	decision := policy.Resolve(bucket, namespace, defaults)
//	switch {
//	case decision.Allows(policy.VerbUpdate):
//		...
//	}
//
// There are three parts, each of which is resolved by itself: the first that is present wins, on
// the object, on its namespace, of the operator.
//
//	policy.ctrlkit.dev/reconcile  manage | skip | detach-on-delete
//	policy.ctrlkit.dev/reclaim    delete | retain
//	policy.ctrlkit.dev/allow      observe, create, update, delete, late-initialize; or *
//
// The rules of a [Decision]:
//
//   - It fails closed. A value that is empty, unknown or contradictory does not fall back to
//     another: nothing is created, updated or deleted, and the deletion of the object waits.
//   - Of two parts that are in conflict, the safer one applies: what may stay, stays.
//   - To observe is always allowed, so that the status is refreshed.
//   - A pause is not among the values. The engine leaves an object with the annotation
//     [github.com/ctrlkit/ctrlkit/condition.PauseAnnotation] alone before any policy is resolved:
//     its status is not refreshed either.
//
// The package reads and writes nothing, so that the packages of API types can import it for
// [RequestStatus]. Package external reads and watches namespaces for an engine.
package policy
