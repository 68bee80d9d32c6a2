// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

func TestNear(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{"job", "jobs"}, {"JOBS", "jobs"}, {"jbos", "jobs"}, {"deploymnet", "Deployment"}, {"pdo", "pod"},
		{"something", ""}, {"", ""}, {"jobs", ""}, {strings.Repeat("j", 100), ""},
	} {
		if got, _ := printable.Near(test.got, []string{"jobs", "pod", "Deployment", strings.Repeat("j", 99)}); got != test.want {
			t.Errorf("near %q: got %q, want %q", test.got, got, test.want)
		}
	}
}
