// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/sim/run"
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

// Help fits into a terminal: its sentences and flags do, and tables and commands to paste nearly.
func TestHelpIsNarrow(t *testing.T) {
	walk(New(), func(cmd *cobra.Command) {
		stdout, _, err := execute(t, "", append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		if err != nil {
			t.Errorf("%s: %v", cmd.CommandPath(), err)
		}
		for line := range strings.SplitSeq(stdout, "\n") {
			limit := helpWidth
			if strings.HasPrefix(line, "  ") && !strings.Contains(line, " --") {
				limit = 122
			}
			if n := utf8.RuneCountInString(line); n > limit && !strings.HasPrefix(line, "  ctrlkit ") || n > 122 {
				t.Errorf("%s: %d characters, more than %d: %s", cmd.CommandPath(), n, limit, line)
			}
		}
	})
}
