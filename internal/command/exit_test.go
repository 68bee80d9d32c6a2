// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/run"
)

// Ctrl-C ends a run without conditions well, and no other.
func TestExitCodesOfRun(t *testing.T) {
	watching := fmt.Errorf("%w: %w", run.ErrWatchingInterrupted, errInterrupted)
	for _, test := range []struct {
		name       string
		err        error
		conditions bool
		want       int
	}{
		{"the time is over", nil, false, 0},
		{"Ctrl-C while watching", watching, false, 0},
		{"Ctrl-C before the conditions hold", watching, true, 130},
		{"Ctrl-C during the set-up", errInterrupted, false, 130},
		{"the operator ended", fmt.Errorf("%w: exit status 2", run.ErrOperatorEnded), false, 1},
		{"the conditions were missed", run.ErrConditionsMissed, true, 1},
		{"it does not compile", run.ErrDoesNotCompile, false, 1},
		{"something else", errors.New("stopping the control plane: no"), false, 1},
	} {
		if got := exitCode(asExit(test.err, test.conditions)); got != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.want)
		}
	}
}
