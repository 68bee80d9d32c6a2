// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

func parsed(t *testing.T, text string) fault.Plan {
	t.Helper()
	p, err := fault.ParsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Of two faults at one request, one that prevents it leaves nothing for those that come after it, in
// whatever order the plan has them.
func TestStriking(t *testing.T) {
	for text, want := range map[string][]int{
		"crash after write 1; touch the object before write 1":              {1, 0},
		"touch the object before write 1; crash after write 1":              {0, 1},
		"crash after write 1; refuse write 1: 409":                          {1},
		"refuse write 1: 409; touch the object before write 1":              {0},
		"touch the object before write 1; refuse write 1: 409":              {0, 1},
		"recreate a b/c after write 1; lose the answer of write 1: timeout": {0, 1},
	} {
		if diff := cmp.Diff(want, striking(parsed(t, text), []int{0, 1})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
