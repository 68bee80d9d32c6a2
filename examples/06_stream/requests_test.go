// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
)

// What the life of a Stream costs, at the real API server and at NATS. The last observation before
// the polls is that of the reconcile which proves that nothing is left to do.
func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policies []string
		secret   string
		create   []string
	}{
		{"without the admission policy", nil, "", []string{"observe", "PATCH streams/s", "create", "observe", "PATCH streams/s/status", "observe"}},
		{"with the admission policy and a connection Secret", policies, "s", []string{"observe", "PATCH streams/s", "create", "observe", "PATCH secrets/s", "PATCH streams/s/status", "observe"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const poll = time.Second
			c := startCluster(t, poll, tt.policies...)
			obj := &v1.Stream{ObjectMeta: c.In("s"), Spec: v1.StreamSpec{Subjects: []string{"s"}, ConnectionSecret: tt.secret}}
			exampletest.Must(t, c.Add(t.Context(), obj))
			c.stream(t, "s", "ready", exampletest.Ready[*v1.Stream])
			got, times := c.counts.take(len(tt.create))
			check(t, "until Ready", got, tt.create)

			last := times[len(times)-1]
			got, times = c.counts.take(3)
			check(t, "three polls", got, []string{"observe", "observe", "observe"})
			for _, at := range times {
				if at.Sub(last) < poll*85/100 { // each object polls within a tenth of the interval
					t.Errorf("observed again after %s", at.Sub(last))
				}
				last = at
			}

			exampletest.Must(t, c.Delete(t.Context(), obj))
			c.Gone(t, obj)
			got, _ = c.counts.take(4)
			check(t, "deletion", got, []string{"observe", "delete", "observe", "PATCH streams/s"})
		})
	}
}

func check(t *testing.T, when string, got, want []string) {
	t.Helper()
	writes := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, "/") }))
	t.Logf("%s: %d writes at the API server, %d calls of NATS", when, writes, len(got)-writes)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: requests (-want +got):\n%s", when, diff)
	}
}
