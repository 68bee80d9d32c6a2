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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/klog/v2"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// Options say what is simulated.
type Options struct {
	Program     trial.Program
	Definitions []*apiextensionsv1.CustomResourceDefinition
	Script      []Step
	Namespace   string // of objects that have none
	Supervisor  []string
	Quiet       time.Duration // the operator is idle when nothing new has happened for so long
	Settle      time.Duration // for how long an operator may take to recover from a fault
	Parallel    int           // runs at the same time; zero: as many as the processors allow
	Outside     bool          // let the operator reach what is outside the cluster

	explore.Choice             // of plans; its Orders are not used
	Plan           *fault.Plan // run this one alone

	// Transitions are run instead of faults if it is not nil: those of the custom resources among
	// Samples whose names it matches.
	Transitions *regexp.Regexp
	Samples     []run.Manifest

	// ByDesign matches violations that are meant, as "ORACLE: PLAN OR TRANSITION"; nil if none is. They are
	// counted as what the operator is declared to do.
	ByDesign *regexp.Regexp

	warned  *sync.Map        // samples with unknown fields
	learned *judge.Reference // what differs between runs without faults; nil in these

	Progress func(string)

	// Visible is called with each directory that could not be hidden from the operator, for each of
	// its starts, from several goroutines. It may be nil.
	Visible func(directory string)
	Found   func(fault.Plan, oracle.Violation) // is called for each kind of violation, with what shows it; may be nil
	Again   func(fault.Plan) string            // the command that runs a plan again
}

// ErrReference is returned if the run without faults fails, so that there is nothing to compare
// with.
var ErrReference = errors.New("the run without faults fails")

// ErrNotPlayed is returned for a plan with a fault that can't strike at a process.
var ErrNotPlayed = errors.New("unknown fault of a process")

// reference is what runs without faults have shown.
type reference struct {
	states  []snapshot.Snapshot // at the checkpoints; nil where nothing is known
	watched map[string]bool     // by the operator, before the script began
	resting bool                // the operator uses next to nothing of a processor when it is idle
	habits  *habits             // of the operator
	places  []fault.Place
	first   *runner
	judge   *judge.Reference // what the oracles compare with
	cost    cost             // of a run with a fault
}

// wanted returns the cluster as it should be at a checkpoint, from 0; nil if nothing is known.
func (r *reference) wanted(i int) snapshot.Snapshot {
	if r == nil {
		return nil
	}
	return r.states[i]
}

// judged returns what the oracles compare with; nil if there is nothing.
func (r *reference) judged() *judge.Reference {
	if r == nil {
		return nil
	}
	return r.judge
}

// Explore runs the program without faults, and then with faults, until all plans were run or the
// budget is spent.
func Explore(ctx context.Context, o Options) (*report.Simulation, error) {
	begun := time.Now()
	o.warned, o.Orders = &sync.Map{}, 1
	klog.SetLogger(logr.Discard()) // a real API server has a log of its own for what ours would print
	if err := o.check(); err != nil {
		return nil, err
	}
	changes, err := o.transitions()
	if err != nil {
		return nil, err
	}
	stop, rest := o.stoppers(begun)
	ref, err := o.refer(ctx, rest)
	if err != nil {
		return nil, err
	}
	stop.Takes(ref.cost.took)
	if o.Parallel == 0 {
		o.Parallel = ref.cost.parallel(runtime.GOMAXPROCS(0))
	}
	x := &exploration{Options: &o, reference: ref, changes: changes, meant: map[oracle.Name][]string{}}
	s := &report.Simulation{Without: ref.first.trace.all()}
	if !o.Shard.Whole() {
		s.Shards = []string{o.Shard.String()}
	}
	e := x.explorer(stop, rest)
	var list []report.Outcome
	if o.Shard.First() {
		list = append(list, e.Report(explore.Ran{Order: explore.OrderOfReference, Outcome: x.outcome(fault.Plan{}, ref.first)}))
		x.know(e, list[0])
	}
	ran, err := e.Explore(ctx, x.plans(), s)
	if err != nil {
		return nil, err
	}
	for _, r := range ran {
		list = append(list, e.Report(r))
	}
	if o.Plan != nil && len(ran) > 0 {
		s.With = strings.Split(ran[0].Trace, "\n")
	}
	s.Off = x.declared()
	if o.ByDesign != nil && len(s.Off) == 0 {
		o.Progress(fmt.Sprintf("nothing that is found in %d plans matches %q, which says what is by design", len(list), o.ByDesign))
	}
	e.Fill(ctx, s, list)
	s.Seconds = time.Since(begun).Seconds()
	return s, nil
}

// stoppers returns what ends the exploration, and what ends making plans smaller: with the time of the
// budget, which counts from the beginning. A plan that is under way then is cut when an operator has
// had the time to recover. Plans of several faults leave time to make them smaller.
func (o *Options) stoppers(begun time.Time) (stop, rest *explore.Stopper) {
	stop, rest = &explore.Stopper{}, &explore.Stopper{}
	if o.Budget.Time == 0 {
		return stop, rest
	}
	for _, s := range []*explore.Stopper{stop, rest} {
		s.Spend(o.Budget, begun)
		s.Kill = begun.Add(o.Budget.Time + o.Settle)
	}
	if o.Pairs > 0 || o.Swarm > 0 || o.Endless {
		stop.Spend(o.Budget, begun.Add(-explore.Margin(o.Budget.Time)))
	}
	return stop, rest
}

// refer runs the program without faults, twice to learn what differs by chance.
func (o *Options) refer(ctx context.Context, stop *explore.Stopper) (*reference, error) {
	within, cancel := stop.Within(ctx)
	defer cancel()
	runs, cost, err := o.withoutFaults(within)
	if ctx.Err() == nil && (within.Err() != nil || err == nil && stop.Stopped() != "") {
		return nil, fmt.Errorf("%w: the budget of %s was over in the two runs that the others are compared with: give it more time", ErrReference, o.Budget)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReference, err)
	}
	ref := &reference{first: runs[0], watched: runs[0].watched, habits: habitsOf(runs), judge: runs[0].judged(), cost: cost}
	ref.judge.LearnChance(runs[1].checkpoints)
	ref.judge.Allow(runs[1].judged())
	o.learned, ref.states = ref.judge, ref.judge.Checkpoints
	ref.resting = max(runs[0].busiest, runs[1].busiest) < restingShare
	if places, _, _, _ := runs[0].boundary.seen(); !slices.ContainsFunc(places, func(p fault.Place) bool { return p.Point == fault.AtWrite }) {
		o.Progress("the operator has written nothing without faults: do the samples have something for it to do?")
	}
	ref.places = placesOf(runs[0].boundary, len(o.Script))
	return ref, nil
}

// withoutFaults returns two runs without faults, and what one with a fault costs. They are under way at
// the same time if runs may be.
func (o *Options) withoutFaults(ctx context.Context) ([]*runner, cost, error) {
	began, together := time.Now(), 2
	if o.Parallel == 1 {
		together = 1
	}
	o.Progress("the two runs without faults")
	runs, errs := make([]*runner, 2), make([]error, 2)
	var group sync.WaitGroup
	for i := range runs {
		group.Go(func() { runs[i], errs[i] = o.without(ctx) })
		if together == 1 {
			group.Wait()
		}
	}
	group.Wait()
	if err := cmp.Or(errs[0], errs[1]); err != nil {
		return nil, cost{}, err
	}
	took := time.Since(began) * time.Duration(together) / 2
	return runs, cost{max(0, took-time.Duration(len(o.Script))*o.Quiet), max(runs[0].load.ran(), runs[1].load.ran())}, nil
}

// without carries out a run without faults that others can be compared with.
func (o *Options) without(ctx context.Context) (*runner, error) {
	r, err := o.run(ctx, fault.Plan{}, nil)
	if err != nil {
		return nil, err
	}
	if r.gaveUp() {
		return nil, errors.New(r.whyItGaveUp())
	}
	if _, _, requests, _ := r.boundary.seen(); requests == 0 {
		return nil, fmt.Errorf("the operator has asked the API server for nothing: does it use the kubeconfig file of KUBECONFIG? \"{kubeconfig}\" in an argument stands for its path\n%s",
			strings.Join(r.process.Last(20), "\n"))
	}
	return r, nil
}

// played are the faults that strike at the boundary of a process.
var played = []fault.Kind{
	fault.CrashAfterWrite, fault.CrashBeforeWrite, fault.OccupyName, fault.DelayWatch, fault.Recreate, fault.RefuseWrite,
	fault.LoseWriteAnswer, fault.DeleteBeforeWrite, fault.TouchBeforeWrite, fault.RefuseRead, fault.Withhold, fault.WithholdAtDeletion,
	fault.LeaveOrphan, fault.CloseWatch, fault.MissEvent, fault.DelayEvent, fault.ExpireWatch, fault.DuplicateEvent, fault.DeleteAndCreate, fault.OccupyNameByController, fault.WipeStatus, fault.ProveIdle,
}

// isPlayed reports whether faults of a kind strike at a process.
func isPlayed(k fault.Kind) bool { return slices.Contains(played, k) }

// placesOf returns the places of a run, with what the operator does there.
func placesOf(b *boundary, checkpoints int) []fault.Place {
	places, names, _, _ := b.seen()
	for i := range places {
		places[i].Site, places[i].Repeated = names[i], b.repeated[i]
	}
	for i := range checkpoints {
		places = append(places, fault.Place{Point: fault.WhenIdle, At: i + 1})
	}
	return places
}

// check returns an error if the plan to run has a fault that can't strike at a process.
func (o *Options) check() error {
	if o.Plan == nil {
		return nil
	}
	if o.Plan.Transition != "" {
		return fmt.Errorf("%w: a plan of a process has faults; --transitions runs %q", ErrNotPlayed, o.Plan)
	}
	for _, f := range o.Plan.Faults {
		if !isPlayed(f.Kind) {
			return fmt.Errorf("%w: %q exists in virtual time only; what strikes at a process is %q", ErrNotPlayed, f, played)
		}
	}
	return nil
}
