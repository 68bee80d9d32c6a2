// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A Runner carries out plans. Each is used by one goroutine.
type Runner interface {
	// Run carries out a plan. One that is not through at the deadline of ctx may be cut: its outcome is
	// unfinished. An error ends the exploration.
	Run(ctx context.Context, plan fault.Plan) (Outcome, error)

	// Stop ends what the runner has started. It is called once, after the last plan.
	Stop()
}

// An Outcome is what a plan has shown, which is a line of JSON between processes.
type Outcome struct {
	Plan       string             // as text; empty for one that was not run
	Violations []oracle.Violation `json:",omitempty"`
	Writes     []*report.Write    `json:",omitempty"` // for each violation, the write that is most likely wrong
	Fired      []bool             `json:",omitempty"`
	Requests   int
	Needs      []permission.Need `json:",omitempty"` // that the runner has not reported already
	Trace      string            `json:",omitempty"` // of a plan that has violated something
	Logs       []string          `json:",omitempty"`
	Meant      []int             `json:",omitempty"` // which options ByDesign match what it violates
	Err        string            `json:",omitempty"`
	Joined     bool              `json:",omitempty"` // the run has ended early, at the mark of another one

	Unfinished bool `json:"-"` // the exploration was stopped before the plan has ended
}

// write returns the write that belongs to a violation; nil where that is not known.
func (o Outcome) write(i int) *report.Write {
	if i < len(o.Writes) {
		return o.Writes[i]
	}
	return nil
}

// Violates reports whether a plan has violated one of the oracles.
func (o Outcome) Violates(oracles ...oracle.Name) bool {
	return slices.ContainsFunc(o.Violations, func(v oracle.Violation) bool { return slices.Contains(oracles, v.Oracle) })
}
