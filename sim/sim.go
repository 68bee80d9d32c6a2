// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"flag"
	"os"
	"regexp"
	"strconv"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// An Option changes what [Run] does.
type Option func(*settings)

type settings struct {
	explore.Choice
	budget  string
	stale   bool // plans with stale lists, too
	whole   bool // no plan joins an earlier one
	until   []oracle.Name
	without oracleSet
	skipped map[fault.Kind]string
	from    string // a recording
	rules   judge.Rules

	transitions *regexp.Regexp // those to run instead of faults; nil: none
	meant       []*meant
	faults      int // with each transition
}

// WithPairs adds plans of two faults, chosen by the seed, to the plans of one.
func WithPairs(n int) Option { return func(s *settings) { s.Pairs = n } }

// WithSwarm adds n plans that a swarm draws from the seed: of three to eight faults, for bugs that
// need so many at once. The parts of a plan are drawn first: which kinds of faults, how many, how
// dense, how much other clients do, and how slow watches are. A finding shows the fewest faults
// that are enough. The flag -sim.swarm runs such plans instead of all others.
func WithSwarm(n int) Option { return func(s *settings) { s.Swarm = n } }

// WithSeed chooses other pairs, and another swarm.
func WithSeed(seed uint64) Option { return func(s *settings) { s.Seed = seed } }

// WithSample runs only n of the plans, for a test that has to be quick: some of each kind of fault, at
// places all over the run, and a fifth of them with several faults, if there are any: pairs first.
// They are the same ones each time, until the operator or the script changes. A shard is of all
// plans: -sim.shard=1/1 runs all.
func WithSample(n int) Option { return func(s *settings) { s.Sample = n } }

// WithBudget runs only a part of the plans: "smoke" tries each kind of fault at one place, "quick"
// at four places all over the run, "full" runs all plans; pairs count as a kind of fault, and so do
// swarms. A time, such as "10m", begins no plan after it, in the order of which the others are a beginning, so that
// what is run depends on the machine. A budget that is used up does not fail the test, and the
// report says what was not run. The flag -sim.budget replaces the budget, and a sample.
func WithBudget(budget string) Option { return func(s *settings) { s.budget = budget } }

// WithStaleLists adds plans in which the first list of an informer is stale. This is possible only
// where informers do not stream their first list, which those of client-go do by default since
// 0.35; many operators that are right with streaming lists are not without them.
func WithStaleLists() Option { return func(s *settings) { s.stale = true } }

// WithStopOn stops the exploration when one of the oracles is violated, instead of running all
// plans.
func WithStopOn(oracles ...Oracle) Option { return func(s *settings) { s.until = oracles } }

// WithoutOracle switches an oracle off. The reason is printed with the result.
func WithoutOracle(name Oracle, reason string) Option {
	return func(s *settings) { s.without[name] = reason }
}

// WithoutFault leaves out the faults of a kind. The reason is printed with the result.
func WithoutFault(kind FaultKind, reason string) Option {
	return func(s *settings) { s.skipped[kind] = reason }
}

// ComesAndGoes declares types of conditions that an operator removes by design, such as one that is
// there only while a Pod waits: the oracle conditions-stay does not demand that they stay.
// Reconciling, Stalled and Paused need no declaration.
func ComesAndGoes(conditions ...string) Option {
	return func(s *settings) {
		for _, kind := range conditions {
			s.rules.ComesAndGoes[kind] = true
		}
	}
}

// Keeps declares a kind ("persistentvolumeclaims", "jobs.batch") of which the operator leaves
// objects in the cluster by design when the object is gone for which it has created them: the
// oracle no-orphans does not demand that they go. The reason is printed with the result.
func Keeps(kind, reason string) Option { return func(s *settings) { s.rules.Keeps[kind] = reason } }

// WithNetwork lets the operator use the real network in its runs, for a server that the test has
// started. Otherwise the run ends with the line of code that uses it: virtual time stands still
// while a goroutine waits for the network, and faults do not strike there. The reason is printed
// with the result.
func WithNetwork(reason string) Option {
	return func(s *settings) { s.rules.Network = cmp.Or(reason, "no reason given") }
}

// Unwatched declares a kind ("nodes", "jobs.batch") that the operator reads by design although
// nothing watches it and no time is requested, because a change need not be noticed at once: the
// oracle no-lost-wake-up does not demand it. The reason is printed with the result.
//
// An engine of package step declares such kinds itself, with Options.Unwatched.
func Unwatched(kind, reason string) Option {
	return func(s *settings) { s.rules.Unwatched[kind] = reason }
}

var (
	workFlag   = flag.String("sim.workload", "", "run only the workload of this `name`, of a test that has several")
	planFlag   = flag.String("sim.plan", "", "run only this `plan` of a simulation, and print what happened")
	shardFlag  = flag.String("sim.shard", "", "run only a part of the plans: the `i/n`-th, such as 2/4")
	swarmFlag  = flag.Int("sim.swarm", 0, "run only `N` plans of many faults, which a swarm draws")
	seedFlag   = flag.Uint64("sim.seed", 0, "choose the pairs and the swarm by this `number` instead of that of the test")
	budgetFlag = flag.String("sim.budget", "", "run the plans that a `budget` has: smoke, quick, full, or a time such as 10m")
	wholeFlag  = flag.Bool("sim.whole", false, "run each plan to its end, also where an earlier one has continued in the same way and shown nothing")
	jsonFlag   = flag.String("sim.json", "", "write what the simulations have found to this `file`, as JSON, or into this directory")
	htmlFlag   = flag.String("sim.html", "", "write what the simulations have found to this `file`, as a page of HTML, or into this directory")
)

func newSettings(options []Option) *settings {
	s := &settings{without: oracleSet{}, skipped: map[fault.Kind]string{}, rules: judge.Rules{ComesAndGoes: map[string]bool{}, Keeps: map[string]string{}, Unwatched: map[string]string{}}}
	s.Orders, s.whole = learningRuns+1, *wholeFlag
	for _, o := range options {
		o(s)
	}
	return s
}

// Run runs a workload without faults, and then again for every single fault that can strike, and
// for the pairs and the swarm that are asked for. It fails the test with what it finds: what is wrong, what
// happened, and a line that runs exactly that plan again.
//
// The plans are run by copies of the test binary, one for each processor.
func Run(t *testing.T, workload Workload, options ...Option) {
	t.Helper()
	report := prepare(t, workload, options, packageOf(2))
	if report == nil {
		return
	}
	if *planFlag != "" {
		report.runOne(t)
		return
	}
	report.explore(t)
	report.print(t)
	if err := publish(report.simulation); err != nil {
		t.Errorf("sim: %v", err)
	}
}

// Explore does what [Run] does, and returns what it finds instead of failing the test: for tests of
// the tests. It returns nil in the copies of the test binary that run the plans; the test has to
// return then. With -sim.plan it does what Run does, and returns nil too.
func Explore(t *testing.T, workload Workload, options ...Option) *Report {
	t.Helper()
	report := prepare(t, workload, options, packageOf(2))
	switch {
	case report == nil:
		return nil
	case *planFlag != "":
		report.runOne(t)
		return nil
	}
	report.explore(t)
	return report
}

// prepare checks a workload. It returns nil when this process is a worker, after its work.
func prepare(t *testing.T, workload Workload, options []Option, dir string) *Report {
	t.Helper()
	s := newSettings(options)
	simulation := nextSimulation(t)
	if *workFlag != "" && workload.Name != *workFlag {
		return nil
	}
	role := os.Getenv(workerVariable)
	if role != "" && role != strconv.Itoa(simulation) {
		return nil // another simulation of this test is meant
	}
	readRecording(t, &workload, s)
	workload.rules = s.rules
	if s.transitions != nil {
		workload.course = &course{}
	}
	if role != "" {
		work(t, &workload, s)
		return nil
	}
	crds := readCRDs(t, &workload)
	if err := s.choose(); err != nil {
		t.Fatalf("sim: %v", err)
	}
	definitions, err := writeShared(crds)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	workers := &simulated{test: t.Name(), number: simulation, crds: definitions}
	again := &repeat{test: t.Name(), dir: dir, workload: workload.Name}
	return &Report{
		simulation: newSimulation(t.Name(), dir, simulation, s), deadline: t.Deadline,
		workload: &workload, crds: crds, settings: s, workers: workers,
		explorer: &explore.Explorer{
			Choice: s.Choice, Start: workers.start, Parallel: runners, Allowed: s.allows, Progress: newProgress(t), Until: s.until, Again: again.line,
		},
	}
}

// readCRDs reads the definitions of a workload, which must be complete.
func readCRDs(t *testing.T, w *Workload) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	if w.Operator == nil || w.Script == nil && w.recorded == nil {
		t.Fatal("sim: a Workload needs an Operator and a Script, which it may lack only with the option From")
	}
	crds, err := definitions.Read(w.CRDs...)
	if err != nil {
		t.Fatalf("sim: reading Workload.CRDs: %v", err)
	}
	if crds, err = withRecorded(crds, w.recorded); err != nil {
		t.Fatalf("sim: %v", err)
	}
	return crds
}
