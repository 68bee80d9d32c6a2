// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// Texts of one duration or quantity are the same in custom resources, and nowhere else.
func TestSameField(t *testing.T) {
	for _, test := range []struct {
		a, b any
		want bool
	}{
		{"1h", "60m0s", true},
		{"1h0m0s", "1h", true},
		{"90s", "1m30s", true},
		{"0", "0s", true},
		{"1Gi", "1024Mi", true},
		{"1000m", "1", true},
		{"500m", "0.5", true},
		{"1000m", int64(1), true},
		{"1", int64(1), true},
		{"1h", "61m", false},
		{"1Gi", "1G", false},
		{"1000m", "2", false},
		{"1.10", "1.1", false}, // versions
		{"1e3", "1000", false}, // revisions
		{"010", "10", false},
		{"on", "ON", false},
		{"", "0s", false},
		{"1", nil, false},
	} {
		for _, v := range [][2]any{{test.a, test.b}, {test.b, test.a}} {
			if got := SameField("shops.example.com default/a", ".spec.timeout", v[0], v[1]); got != test.want {
				t.Errorf("%#v and %#v: got %t", v[0], v[1], got)
			}
		}
	}
	for _, other := range [][2]string{
		{"configmaps default/a", ".spec.timeout"}, {"deployments.apps default/a", ".spec.timeout"}, {"ConfigMap default/a", ".spec.timeout"},
		{"shops.example.com default/a", ".metadata.labels.timeout"},
	} {
		if SameField(other[0], other[1], "1h", "60m") {
			t.Errorf("%s %s: they are the same", other[0], other[1])
		}
	}
}
