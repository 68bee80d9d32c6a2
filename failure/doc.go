// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package failure is the table of what goes wrong: for each class of errors how bad it is, which
// reason a condition gives, and when it is tried again.
//
//	verdict := failure.Classify(err)
//	verdict.Class    // Forbidden
//	verdict.Severity // condition.SeverityError: somebody must act
//	verdict.Reason   // "Forbidden"
//	delay := verdict.Backoff.Delay(failures)
//
// Nothing is silent for ever: also a terminal error is tried again, slowly, because what was called
// terminal is often not. To say more about an error than can be seen in it, wrap it with [Mark], or
// give [Table] a classifier of your own.
package failure
