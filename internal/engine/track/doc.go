// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package track records what the steps of a reconcile read and write: for the journal, for the
// detection of hot loops, and to find out whether a later reconcile would see anything new.
package track
