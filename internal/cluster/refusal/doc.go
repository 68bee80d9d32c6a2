// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package refusal reads why an API server refuses a change of an object that a client keeps as it
// wants it, and says what can be done.
//
//   - [Others]: the object has another member of a union than the one that is wanted. It can be
//     changed, after [TakeOver].
//   - [Immutable]: a field can't be changed, and nothing else is wrong. The object can be replaced.
//   - [Duplicates]: a list has two items of the same key. The author has to correct that.
//
// It serves the sets of package apply and apply.Ensure alike, and decides nothing: what may be
// deleted is a matter of their policies. Package failure is above it, so that it marks no error.
package refusal
