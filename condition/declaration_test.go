// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/condition"
)

func TestSeverities(t *testing.T) {
	for severity, want := range map[condition.Severity]string{
		condition.SeverityInfo: "info", condition.SeverityWarning: "warning", condition.SeverityError: "error", 0: "no severity", 4: "no severity", -1: "no severity",
	} {
		if got := severity.String(); got != want {
			t.Errorf("severity %d: got %q, want %q", severity, got, want)
		}
	}
	if condition.SeverityInfo >= condition.SeverityWarning || condition.SeverityWarning >= condition.SeverityError {
		t.Error("the worst is not the last")
	}
}
