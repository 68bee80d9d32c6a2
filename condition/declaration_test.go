// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/condition"
)

func TestSeverities(t *testing.T) {
	for severity, want := range map[condition.Severity]string{
		condition.SeverityInfo: "info", condition.SeverityWarning: "warning", condition.SeverityError: "error", 0: "no severity", 4: "no severity", -1: "no severity",
	} {
		same(t, "severity", want, severity.String())
	}
	if condition.SeverityInfo >= condition.SeverityWarning || condition.SeverityWarning >= condition.SeverityError {
		t.Error("the worst is not the last")
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		types []string
		want  string
	}{
		{"none", nil, ""},
		{"two", []string{"SecretFound", "example.com/SecretFound"}, ""},
		{"the longest", []string{strings.Repeat("a", 316)}, ""},
		{"too long", []string{strings.Repeat("a", 317)}, "a type looks like"},
		{"empty", []string{""}, "a type looks like"},
		{"a space", []string{"Secret found"}, `"Secret found" can't be declared: a type looks like "SecretFound" or "example.com/SecretFound"`},
		{"a line", []string{"SecretFound\n"}, "a type looks like"},
		{"twice", []string{"A", "B", "A"}, `"A" is declared twice`},
		{"Ready", []string{"Ready"}, `"Ready" can't be declared: it is computed`},
		{"Reconciling", []string{"A", "Reconciling"}, "it is computed"},
		{"Stalled", []string{"Stalled"}, "it is computed"},
		{"Paused", []string{"Paused"}, "it is computed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var declarations []condition.Declaration
			for _, conditionType := range tt.types {
				declarations = append(declarations, condition.Declaration{Type: conditionType})
			}
			err := condition.Check(declarations)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}
