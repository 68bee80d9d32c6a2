// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import "testing"

// WithoutOnces has the rest of a test run as in a program that has no [Once].
func WithoutOnces(tb testing.TB) {
	made := onceMade.Swap(false)
	tb.Cleanup(func() { onceMade.Store(made) })
}
