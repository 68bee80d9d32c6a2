// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// message is what Run reports to the command that has started the test, a line of JSON in the file
// that the environment names.
type message struct {
	Test    string
	Done    int
	Total   int
	Bad     int
	Line    string        `json:",omitempty"` // these numbers, how fast it is, and how long it will take
	Found   string        `json:",omitempty"` // a new kind of finding, in a line
	Summary string        `json:",omitempty"`
	Elapsed time.Duration `json:",omitempty"`
}

// ProgressVariable names the environment variable with the file that [Run] appends its progress to,
// for commands that show it.
const ProgressVariable = "CTRLKIT_SIM_PROGRESS"

// reportProgress appends a message to the file of the command, if there is one.
func reportProgress(m message) {
	name := os.Getenv(ProgressVariable)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // progress is only shown
	_ = json.NewEncoder(f).Encode(m)
}

// newFound returns what reports each kind of finding when a plan shows it first.
func newFound(test string) func(plan fault.Plan, v oracle.Violation) {
	return func(plan fault.Plan, v oracle.Violation) {
		line := fmt.Sprintf("%s: found %s: %s, with: %s", test, v.Class(), report.Line(v), plan)
		reportProgress(message{Test: test, Found: line})
		if testing.Verbose() {
			fmt.Fprintln(os.Stderr, line)
		}
	}
}

// newProgress reports how far the exploration is, every few seconds.
func newProgress(t *testing.T) func(explore.Progress) {
	last, printed := time.Now(), time.Now()
	return func(p explore.Progress) {
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		reportProgress(message{Test: t.Name(), Done: p.Done, Total: p.Total, Bad: p.Bad, Line: p.String()})
		if testing.Verbose() && time.Since(printed) >= printEvery {
			printed = last
			fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name(), p)
		}
	}
}

// How often progress is reported: to a command that draws it, and as lines that stay.
const (
	progressEvery = 2 * time.Second
	printEvery    = 15 * time.Second
)
