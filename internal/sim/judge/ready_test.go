// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import "testing"

// Ready sums the other conditions up: beside one that is not True, Available is no success.
func TestClaims(t *testing.T) {
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status}
	}
	for _, test := range []struct {
		conditions []any
		want       string
	}{
		{nil, ""},
		{[]any{condition("Available", "True")}, "Available"},
		{[]any{condition("Available", "True"), condition("Ready", "True")}, "Ready"},
		{[]any{condition("Available", "True"), condition("Ready", "False")}, ""},
		{[]any{condition("Available", "False"), condition("Ready", "True")}, "Ready"},
	} {
		content := map[string]any{"metadata": map[string]any{}, "status": map[string]any{"conditions": test.conditions}}
		if got := claims(content); got != test.want {
			t.Errorf("%v claim %q, want %q", test.conditions, got, test.want)
		}
	}
}
