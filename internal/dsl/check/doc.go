// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package check gives a document its meaning: it looks up every name, in the document and in the Go packages that the
// document is bound to, and makes the model that code is generated from.
//
//	in, err := check.Read(".")
//	...
//	pkg, list, err := check.Check(ctx, in, check.GoLoader{})
//	if list.HasErrors() {
//		// pkg is nil; the list names every mistake once, sorted by position
//	}
//
// What is wrong with a document is never an error but an entry in the list. The error is for what no change of the
// document can repair: a missing go command, a canceled context.
package check
