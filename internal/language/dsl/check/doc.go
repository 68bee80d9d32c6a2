// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package check resolves documents: it looks up every name, in the document and in the Go packages
// that the document is bound to, and makes the model that Go is generated from.
//
//	in, err := check.Read(".")
//	...
//	pkg, list, err := check.Check(ctx, in, check.GoLoader{})
//	if list.HasErrors() {
//		// pkg is nil; the list names every mistake once, sorted by position
//	}
//
// A mistake in a document is never an error but a diagnostic in the list. The error is for what no
// change of the document can repair: a missing go command, a canceled context.
package check
