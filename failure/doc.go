// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package failure is the table of what goes wrong: for each class of errors its severity, the
// reason of conditions, and the delay until it is retried.
//
//	c := failure.Classify(err)
//	c.Class    // Forbidden
//	c.Severity // condition.SeverityError: a person must act
//	c.Reason   // "Forbidden"
//	delay := c.Backoff.Delay(failures)
//
// Every failure is retried: a terminal error too, slowly, because what was called terminal is often
// not. To add to an error what the table cannot know, wrap it with [Mark], or give [Table] a
// classifier of your own.
package failure
