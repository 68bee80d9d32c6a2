// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance shows that the API server in memory does what the real one does: its test sends the same random requests to both and
// compares every answer, every watch event and the end state.
package conformance
