// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// A process that is started does not count as idle because an earlier one has watched something.
func TestStarted(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	for _, want := range []bool{true, false} {
		if !want {
			r.started()
		} else {
			r.asked(&apiserver.Request{Method: "GET", Path: "/api/v1/pods", Verb: "watch"})
		}
		if _, err := r.idleFor(); (err == nil) != want {
			t.Errorf("got %v, want an error: %t", err, !want)
		}
	}
}
