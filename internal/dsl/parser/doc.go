// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package parser makes the tree of a document from its text.
//
// [Parse] never fails: it returns the tree of what it understood together with a diagnostic for everything that it did
// not. A mistake costs the line that it is in, or the braces that are missing, and nothing else. The time that it takes
// is linear in the length of the text.
//
// Names are not looked up here and need not make sense: that is left to package check.
package parser
