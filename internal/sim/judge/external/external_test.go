// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"fmt"
	"testing"
)

func TestCallsAreOneLine(t *testing.T) {
	for want, call := range map[string]Call{
		"buckets create b": {System: "buckets", Verb: "create", What: "b", Mutates: true, Owner: "u1"},
		"buckets list":     {System: "buckets", Verb: "list"},
	} {
		if got := call.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Each answer of a fault is an error of its own, also when it is wrapped.
func TestErrors(t *testing.T) {
	all := []error{ErrThrottled, ErrUnavailable, ErrLost}
	for i, err := range all {
		for j, other := range all {
			if got := errors.Is(fmt.Errorf("create buckets: %w", err), other); got != (i == j) {
				t.Errorf("%q is %q: %t", err, other, got)
			}
		}
	}
}
