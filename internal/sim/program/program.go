// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package program simulates any operator as a process, in any language: it runs it on a cluster in
// memory in real time, lets faults strike at its requests, and compares how each run ends with the
// end of a run without faults.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/klog/v2"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/minted"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
)

// Options say what is simulated.
type Options struct {
	Program     plan.Program
	Definitions []*apiextensionsv1.CustomResourceDefinition
	Script      []Step
	Namespace   string // of objects that have none
	Supervisor  []string
	Quiet       time.Duration // the operator is idle when nothing new has happened for so long
	Settle      time.Duration // for how long an operator may take to recover from a fault
	Budget      time.Duration // after which no more plans are begun
	Parallel    int           // runs at the same time
	Outside     bool          // let the operator reach what is outside the cluster
	Plan        *fault.Plan   // run this one alone
	Pairs       int           // how many plans of two faults are run after those of one
	Seed        uint64        // chooses the pairs

	// Transitions are run instead of faults if it is not nil: those of the custom resources among
	// Samples whose names it matches.
	Transitions *regexp.Regexp
	Samples     []run.Manifest

	// ByDesign matches violations that are meant, as "ORACLE: PLAN OR TRANSITION"; nil if none is. They are
	// counted as what the operator is declared to do.
	ByDesign *regexp.Regexp

	warned *sync.Map    // samples with unknown fields
	minted minted.Names // that differ between runs without faults

	Progress func(string)

	// Visible is called with each directory that could not be hidden from the operator, for each of
	// its starts, from several goroutines. It may be nil.
	Visible func(directory string)
	Found   func(string, oracle.Violation)               // is called for each kind of violation, with what shows it; may be nil
	Again   func(p fault.Plan, transition string) string // the command that runs a plan, or a transition, again
}

// ErrReference is returned if the run without faults fails, so that there is nothing to compare
// with.
var ErrReference = errors.New("the run without faults fails")

// ErrNotPlayed is returned for a plan with a fault that can't strike at a process.
var ErrNotPlayed = errors.New("unknown fault of a process")

// reference is what runs without faults have shown.
type reference struct {
	states  []state
	chance  map[string]bool // what differs between two of them
	watched map[string]bool // by the operator, before the script began
	plans   []fault.Plan
	first   *runner
	judge   *judge.Reference // what the oracles compare with
}

// judged returns what the oracles compare with; nil if there is nothing.
func (r *reference) judged() *judge.Reference {
	if r == nil {
		return nil
	}
	return r.judge
}

// Explore runs the program without faults, and then with one fault in each run, until all plans
// were run or the budget is spent.
func Explore(ctx context.Context, o Options) (*report.Simulation, error) {
	begun := time.Now()
	o.warned = &sync.Map{}
	klog.SetLogger(logr.Discard()) // a real API server has a log of its own for what ours would print
	if err := o.check(); err != nil {
		return nil, err
	}
	tasks, err := o.transitions()
	if err != nil {
		return nil, err
	}
	ref, err := o.refer(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Transitions != nil:
	case o.Plan != nil:
		tasks = []task{{plan: *o.Plan}}
	default:
		for _, p := range o.plans(ref) {
			tasks = append(tasks, task{plan: p})
		}
	}
	s := &report.Simulation{Plans: report.Plans{Total: len(tasks) + 1}, Without: ref.first.trace.all()}
	e := &explorer{Options: &o, reference: ref, tasks: tasks, known: map[string]bool{}, meant: map[oracle.Name][]string{}, begun: map[string]bool{}, deadline: begun.Add(o.Budget)}
	e.add(0, task{}, ref.first)
	err = e.all(ctx)
	s.Plans.Total += e.alone
	switch {
	case err != nil && ctx.Err() != nil:
		s.Stopped = "interrupted"
	case err != nil:
		return nil, err
	case len(e.outcomes) < s.Plans.Total:
		s.Stopped = "budget"
	}
	s.Off = e.declared()
	if o.ByDesign != nil && len(s.Off) == 0 {
		o.Progress(fmt.Sprintf("nothing that is found in %d plans matches %q, which says what is by design", len(e.outcomes), o.ByDesign))
	}
	s.Fill(e.outcomes)
	if o.Plan != nil && len(e.outcomes) > 1 {
		s.With = strings.Split(e.outcomes[1].Trace, "\n")
	}
	s.Seconds = time.Since(begun).Seconds()
	return s, nil
}

// plans returns those of one fault, and pairs.
func (o *Options) plans(ref *reference) []fault.Plan {
	pairs := pairsOf(ref.plans, o.Pairs, o.Seed)
	if o.Pairs > 0 {
		o.Progress(fmt.Sprintf("%d plans with one fault, and %d with two, chosen by the seed %d", len(ref.plans), len(pairs), o.Seed))
	}
	return slices.Concat(ref.plans, pairs)
}

// refer runs the program without faults, twice to learn what differs by chance.
func (o *Options) refer(ctx context.Context) (*reference, error) {
	var runs []*runner
	for i := range 2 {
		o.Progress(fmt.Sprintf("the run without faults, %d of 2", i+1))
		r, err := o.run(ctx, fault.Plan{}, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrReference, err)
		}
		if r.gaveUp() {
			return nil, fmt.Errorf("%w: %s", ErrReference, r.whyItGaveUp())
		}
		if _, _, requests, _ := r.boundary.seen(); requests == 0 {
			return nil, fmt.Errorf("%w: the operator has asked the API server for nothing: does it use the kubeconfig file of KUBECONFIG? \"{kubeconfig}\" in an argument stands for its path\n%s",
				ErrReference, strings.Join(r.process.Last(20), "\n"))
		}
		runs = append(runs, r)
	}
	o.minted = learnNames(runs[0].checkpoints, runs[1].checkpoints)
	ref, other := &reference{chance: map[string]bool{}, first: runs[0], watched: runs[0].watched, judge: runs[0].judged()}, runs[1].judged()
	ref.judge.Mint(o.minted)
	other.Mint(o.minted)
	ref.judge.Allow(other)
	for i := range runs[0].checkpoints {
		want := runs[0].checkpoints[i].renamed(o.minted)
		for _, d := range runs[1].checkpoints[i].renamed(o.minted).differences(want, nil) {
			ref.chance[snapshot.MaskKey(d)] = true
		}
		ref.states = append(ref.states, want)
	}
	if places, _, _, _ := runs[0].boundary.seen(); !slices.ContainsFunc(places, func(p fault.Place) bool { return p.Point == fault.AtWrite }) {
		o.Progress("the operator has written nothing without faults: do the samples have something for it to do?")
	}
	ref.plans = plansFor(runs[0].boundary, len(o.Script))
	return ref, nil
}

// played are the faults that strike at the boundary of a process.
var played = []fault.Kind{
	fault.CrashAfterWrite, fault.CrashBeforeWrite, fault.OccupyName, fault.DelayWatch, fault.Recreate, fault.RefuseWrite,
	fault.LoseWriteAnswer, fault.DeleteBeforeWrite, fault.TouchBeforeWrite, fault.RefuseRead, fault.Withhold, fault.WithholdAtDeletion,
	fault.LeaveOrphan, fault.CloseWatch, fault.MissEvent, fault.DelayEvent, fault.ExpireWatch, fault.DuplicateEvent, fault.DeleteAndCreate, fault.OccupyNameByController, fault.WipeStatus, fault.ProveIdle,
}

// plansFor returns the plans for the places of a run, those first that are the first of their kind:
// each fault at one kind of request, then each at a second one, until each was at each kind, and then
// at the second request of each kind. A read that is repeated while nothing changes, as by an operator
// that polls, comes last: what it can show, the first one has shown.
func plansFor(b *boundary, checkpoints int) []fault.Plan {
	places, names, _, _ := b.seen()
	type ranked struct {
		plan                         fault.Plan
		round, row, pass, turn, kind int
	}
	var list []*ranked
	for i := range checkpoints {
		list = append(list, &ranked{plan: fault.Plan{Faults: []fault.Fault{{Kind: fault.ProveIdle, At: i + 1}}}, row: slices.Index(played, fault.ProveIdle), turn: i})
	}
	count := map[string]int{}
	kinds := map[[2]int]int{} // kinds of requests at which a kind of fault strikes in a round
	for i := range places {
		for row, variants := range variantsAt(&places[i]) {
			key := fmt.Sprint(row, " ", names[i])
			round := count[key]
			count[key]++
			if b.repeated[i] {
				round += len(places)
			}
			n := kinds[[2]int{round, row}]
			kinds[[2]int{round, row}]++
			for v, f := range variants { // in one pass, each kind of request gets one variant, and the next kind the next one
				list = append(list, &ranked{plan: fault.Plan{Faults: []fault.Fault{f}}, round: round, row: row, pass: (v + n) % len(variants), kind: n})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *ranked) int { return cmp.Or(a.round-b.round, a.row-b.row, a.pass-b.pass, a.kind-b.kind) })
	for i, r := range list {
		if i > 0 && list[i-1].round == r.round && list[i-1].row == r.row {
			r.turn = list[i-1].turn + 1
		}
	}
	slices.SortStableFunc(list, func(a, b *ranked) int { return cmp.Or(a.round-b.round, a.turn-b.turn, a.row-b.row) })
	plans := make([]fault.Plan, len(list))
	for i := range list {
		plans[i] = list[i].plan
	}
	return plans
}

// check returns an error if the plan to run has a fault that can't strike at a process.
func (o *Options) check() error {
	if o.Plan == nil {
		return nil
	}
	for _, f := range o.Plan.Faults {
		if !slices.Contains(played, f.Kind) {
			return fmt.Errorf("%w: %q exists in virtual time only; what strikes at a process is %q", ErrNotPlayed, f, played)
		}
	}
	return nil
}

// variantsAt returns the faults that can strike at a place, by their index in played.
func variantsAt(p *fault.Place) map[int][]fault.Fault {
	variants := map[int][]fault.Fault{}
	for _, f := range p.Faults() {
		if row := slices.Index(played, f.Kind); row >= 0 {
			variants[row] = append(variants[row], f)
		}
	}
	return variants
}

// A task is a plan, or a change.
type task struct {
	plan   fault.Plan
	change *change
}

// String returns what a report calls it.
func (t task) String() string {
	if t.change != nil {
		return t.change.Name
	}
	return t.plan.String()
}

// transition returns the name of the change; "" if there is none.
func (t task) transition() string {
	if t.change == nil {
		return ""
	}
	return t.change.Name
}

// explorer runs plans.
type explorer struct {
	*Options
	reference *reference
	tasks     []task
	deadline  time.Time

	mu       sync.Mutex // guards what follows
	next     int
	outcomes []report.Outcome
	known    map[string]bool          // kinds of violations
	meant    map[oracle.Name][]string // plans and transitions that violate an oracle by design
	begun    map[string]bool          // plans and transitions
	alone    int                      // faults of pairs that were run alone because the pair has found something
	err      error
}

// all runs the plans until the budget is spent.
func (e *explorer) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for range max(1, e.Parallel) {
		running.Go(func() {
			for i, ok := e.take(ctx); ok; i, ok = e.take(ctx) {
				if err := e.one(ctx, i+1, e.tasks[i]); err != nil {
					e.mu.Lock()
					e.err = errors.Join(e.err, err)
					e.mu.Unlock()
					cancel()
				}
			}
		})
	}
	running.Wait()
	return e.err
}

// take returns the next plan, unless there is none or no time left.
func (e *explorer) take(ctx context.Context) (int, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil || e.next == len(e.tasks) || e.Budget > 0 && time.Now().After(e.deadline) {
		return 0, false
	}
	e.next++
	e.begun[e.tasks[e.next-1].String()] = true
	e.Progress(fmt.Sprintf("plan %d of %d, %d kinds of findings: %s", e.next, len(e.tasks), len(e.known), e.tasks[e.next-1]))
	return e.next - 1, true
}

// repetitions is how often a plan is run again that violates an oracle.
const repetitions = 2

// try carries out a task.
func (e *explorer) try(ctx context.Context, t task) (*runner, error) {
	if t.change != nil {
		return e.tryChange(ctx, t.change)
	}
	return e.run(ctx, t.plan, e.reference)
}

// one runs a plan, and again if it finds something new: in real time, what happens once may not
// happen again.
func (e *explorer) one(ctx context.Context, order int, t task) error {
	r, err := e.try(ctx, t)
	if err != nil {
		return fmt.Errorf("plan %q: %w", t, err)
	}
	if e.isNew(t, r) {
		if err := e.singles(ctx, order, t); err != nil {
			return err
		}
	}
	if e.isNew(t, r) {
		times := map[oracle.Name]int{}
		for range repetitions {
			again, err := e.try(ctx, t)
			if err != nil {
				return fmt.Errorf("plan %q: %w", t, err)
			}
			for _, v := range again.violations {
				times[v.Oracle]++
			}
		}
		for j := range r.violations {
			if n := min(times[r.violations[j].Oracle], repetitions); n < repetitions {
				r.violations[j].Text += fmt.Sprintf("\n(seen in %d of %d runs of the plan: it depends on timing)", n+1, repetitions+1)
			}
		}
	}
	e.add(order, t, r)
	return nil
}

// isNew reports whether a run of a task has found something that was not found before.
func (e *explorer) isNew(t task, r *runner) bool {
	violations, _ := e.split(t, r.violations)
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(violations, func(v oracle.Violation) bool { return !e.known[report.Key(v, nil)] })
}

// add adds what a run of a task has found.
func (e *explorer) add(order int, t task, r *runner) {
	violations, meant := e.split(t, r.violations)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range meant {
		e.meant[name] = append(e.meant[name], t.String())
	}
	e.outcomes = append(e.outcomes, e.outcome(order, t, r, violations))
	for _, v := range violations {
		if key := report.Key(v, nil); !e.known[key] {
			e.known[key] = true
			if e.Found != nil {
				e.Found(t.String(), v)
			}
		}
	}
}

// split returns the violations of a task without those that are by design, and the oracles of these.
func (e *explorer) split(t task, all []oracle.Violation) (violations []oracle.Violation, meant []oracle.Name) {
	for _, v := range all {
		if e.ByDesign != nil && e.ByDesign.MatchString(string(v.Oracle)+": "+t.String()) {
			meant = append(meant, v.Oracle)
		} else {
			violations = append(violations, v)
		}
	}
	return violations, meant
}

// declared returns what is by design, as a report has it.
func (e *explorer) declared() []report.Off {
	var list []report.Off
	for _, name := range slices.Sorted(maps.Keys(e.meant)) {
		plans := slices.Sorted(slices.Values(e.meant[name]))
		what := fmt.Sprintf("violates %s by design with %q", name, plans[0])
		if more := len(plans) - 1; more > 0 {
			what += fmt.Sprintf(" and in %d more plans", more)
		}
		list = append(list, report.Off{Declared: what, Reason: "it matches " + strconv.Quote(e.ByDesign.String())})
	}
	return list
}

func (e *explorer) outcome(order int, t task, r *runner, violations []oracle.Violation) report.Outcome {
	_, _, requests, fired := r.boundary.seen()
	return report.Outcome{
		Order: order, Plan: r.plan, Again: e.Again(r.plan, t.transition()), Title: t.transition(), Requests: requests, Fired: fired, Violations: violations, Trace: strings.Join(r.trace.all(), "\n"),
	}
}
