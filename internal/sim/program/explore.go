// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// exploration runs plans, several at the same time.
type exploration struct {
	*Options
	reference *reference
	changes   []*change // that are run instead of faults

	mu    sync.Mutex               // guards what follows
	meant map[oracle.Name][]string // plans and transitions that violate an oracle by design
}

// repetitions is how often a plan is run again that shows something new.
const repetitions = 2

// explorer returns what decides which plans are run.
func (x *exploration) explorer(stop, rest *explore.Stopper) *explore.Explorer {
	return &explore.Explorer{
		Choice: x.Choice, Start: func() (explore.Runner, error) { return x, nil }, Parallel: func(plans int) int { return max(1, min(x.Parallel, plans)) },
		Places: x.reference.places, Allowed: isPlayed, Repeat: repetitions, OnlyFewer: true, Stop: stop, Rest: rest,
		Known: map[string]bool{}, Found: x.Found, Again: x.Again, Progress: func(p explore.Progress) { x.Progress(p.String()) },
	}
}

// plans lists the plans that there are.
func (x *exploration) plans() []fault.Plan {
	if x.Plan != nil {
		return []fault.Plan{*x.Plan}
	}
	if x.Transitions == nil {
		plans := x.Choice.Plans(explore.Faults(x.reference.places, isPlayed))
		if x.Pairs > 0 {
			x.Progress(fmt.Sprintf("%d plans, of which up to %d have two faults, chosen by the seed %d", len(plans), x.Pairs, x.Seed))
		}
		return plans
	}
	var plans []fault.Plan
	for _, c := range x.changes {
		plans = append(plans, fault.Plan{Transition: c.Name})
	}
	return plans
}

// know lets the explorer know what the run without faults has shown.
func (x *exploration) know(e *explore.Explorer, first report.Outcome) {
	for _, v := range first.Violations {
		e.Known[report.Key(v, nil)] = true
		if x.Found != nil {
			x.Found(first.Plan, v)
		}
	}
}

// Run implements [explore.Runner].
func (x *exploration) Run(ctx context.Context, p fault.Plan) (explore.Outcome, error) {
	r, err := x.try(ctx, p)
	if err != nil && ctx.Err() != nil {
		return explore.Outcome{Unfinished: true}, nil
	}
	if err != nil {
		return explore.Outcome{}, err
	}
	return x.outcome(p, r), nil
}

// Stop implements [explore.Runner]: each run ends what it has started.
func (x *exploration) Stop() {}

// try carries out a plan.
func (x *exploration) try(ctx context.Context, p fault.Plan) (*runner, error) {
	if p.Transition == "" {
		return x.run(ctx, p, x.reference)
	}
	i := slices.IndexFunc(x.changes, func(c *change) bool { return c.Name == p.Transition })
	return x.tryChange(ctx, x.changes[i])
}

// outcome returns what a run has shown, without what is by design.
func (x *exploration) outcome(p fault.Plan, r *runner) explore.Outcome {
	_, _, requests, fired := r.boundary.seen()
	o := explore.Outcome{Plan: p.String(), Requests: requests, Fired: fired, Trace: strings.Join(r.trace.all(), "\n")}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, v := range r.violations {
		title := strings.TrimPrefix(p.String(), "change ")
		if x.ByDesign != nil && x.ByDesign.MatchString(string(v.Oracle)+": "+title) {
			x.meant[v.Oracle] = append(x.meant[v.Oracle], title)
		} else {
			o.Violations = append(o.Violations, v)
		}
	}
	return o
}

// declared returns what is by design, as a report has it.
func (x *exploration) declared() []report.Off {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []report.Off
	for _, name := range slices.Sorted(maps.Keys(x.meant)) {
		plans := slices.Compact(slices.Sorted(slices.Values(x.meant[name])))
		what := fmt.Sprintf("violates %s by design with %q", name, plans[0])
		if more := len(plans) - 1; more > 0 {
			what += fmt.Sprintf(" and in %d more plans", more)
		}
		list = append(list, report.Off{Declared: what, Reason: "it matches " + strconv.Quote(x.ByDesign.String())})
	}
	return list
}
