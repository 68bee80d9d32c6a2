// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package explanation makes a [Report] of what a journal holds about an object, and explains it,
// together with the object itself, in words. [Serve] serves reports from an operator;
// "ctrlkit explain" reads one, adds the object as the API server has it, and prints the
// [Explanation].
//
// A report is sent as JSON between an operator and a command of the same version.
package explanation
