// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance tests that the API server in memory does what the real one does. Its test
// sends the same random requests to both and compares every answer, every watch event and the final
// state.
package conformance
