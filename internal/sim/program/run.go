// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// otherActor is the actor of what another client changes.
const otherActor = "other"

// lookEvery is how often a run looks whether the operator has become idle.
const lookEvery = 50 * time.Millisecond

// mostRestarts is how often a process is started again that ends by itself, in one run.
const mostRestarts = 3

// A runner carries out one run.
type runner struct {
	*Options
	plan     fault.Plan
	cluster  *memory.Cluster
	boundary *boundary
	world    *world
	history  *history
	trace    *trace
	dir      string
	stopping func()
	process  *run.Process
	killed   chan struct{}
	spent    chan struct{} // it makes requests without an end
	logs     []string      // of processes that have ended
	restarts int
	watched  map[string]bool // what it has watched before the script began

	checkpoints []state
	violations  []oracle.Violation
}

// run carries out a run of a plan. reference has the states to reach; it is nil in a run without
// faults.
func (o *Options) run(ctx context.Context, p fault.Plan, reference *reference) (_ *runner, err error) {
	t := newTrace()
	r := &runner{Options: o, plan: p, trace: t, killed: make(chan struct{}, 1), spent: make(chan struct{}), stopping: func() {}}
	clock := newClock()
	r.world = &world{judge: o.newJudge(p, reference.judged(), t, clock), later: &later{clock: clock, quiet: o.Quiet, most: o.Settle}}
	r.history = newHistory(t, clock, r.world.see)
	r.boundary = newBoundary(r.world, t)
	if reference == nil {
		r.boundary.catalog = &inject.Catalog{}
	} else {
		maps.Copy(r.boundary.watched, reference.watched)
	}
	r.boundary.changes, r.boundary.version, r.boundary.awake = r.history.countOf, r.history.last, r.history.wake
	r.boundary.spent = sync.OnceFunc(func() { close(r.spent) })
	r.boundary.crash = func() {
		select {
		case r.killed <- struct{}{}:
		default:
		}
	}
	if r.dir, err = os.MkdirTemp("", "ctrlkit-program-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	if r.cluster, err = memory.Start(memory.Options{Definitions: o.Definitions, Changed: r.changed, Wrap: r.boundary.wrap}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.cluster.Stop()) }()
	r.world.begin(r.cluster.Exclusively, p, r.boundary, t, r.boundary.catalog)
	if err := r.start(); err != nil {
		return nil, err
	}
	defer func() { r.process.Kill(); r.stopping() }()
	r.ready(ctx)
	r.watched = r.boundary.watches()
	r.world.see((*judge.Judge).Prepared)
	for i, step := range o.Script {
		if err := r.step(ctx, i, step, reference); err != nil {
			return nil, err
		}
		if r.gaveUp() {
			break
		}
	}
	r.end()
	return r, nil
}

// end lets the oracles look at the end of the run.
func (r *runner) end() {
	logs := append(r.logs, r.process.Last(logLines)...)
	r.world.see(func(j *judge.Judge) {
		j.End(judge.End{Logs: logs})
		r.violations = append(r.violations, j.Violations()...)
	})
}

// logLines is how many lines of the log of a process the oracles see.
const logLines = 500

// changed takes a change of the cluster.
func (r *runner) changed(c apiserver.Change) {
	if cluster.Ignored(c.Resource) {
		return
	}
	r.history.changed(c)
	r.world.changed(c)
}

// stop ends the process.
func (r *runner) stop() {
	r.process.Kill()
	r.logs = append(r.logs, r.process.Last(logLines)...)
}

// ready waits until the operator has asked for what it asks for at its start, so that what it sees in a
// first list, and what a watch shows it, is the same in each run. An operator that does not start is
// left to [runner.settle].
func (r *runner) ready(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for r.history.idle() < r.Settle {
		select {
		case <-ctx.Done():
			return
		case <-r.process.Ended():
			return
		case <-r.killed: // a fault has struck
			r.killed <- struct{}{}
			return
		case <-ticker.C:
			r.history.clock.look(r.process.Starved(), lookEvery)
		}
		if works, caughtUp := r.boundary.works(); works && caughtUp && r.history.idle() >= r.Quiet/2 {
			return
		}
	}
}

// gaveUp reports whether the process was started as often as it may be, or has made as many
// requests.
func (r *runner) gaveUp() bool {
	select {
	case <-r.spent:
		return true
	default:
		return r.restarts > mostRestarts
	}
}

// whyItGaveUp says why a run without faults is no reference.
func (r *runner) whyItGaveUp() string {
	for _, v := range r.violations {
		if v.Oracle == oracle.OperatorRuns || v.Oracle == oracle.BoundedRequests {
			return v.Text
		}
	}
	return "the operator does not stop working"
}

// judged returns what the oracles of other runs compare with.
func (r *runner) judged() (reference *judge.Reference) {
	_, _, requests, _ := r.boundary.seen()
	r.world.see(func(j *judge.Judge) { reference = j.Reference(nil, requests) })
	return reference
}

// start starts the program.
func (r *runner) start() error {
	r.stopping()
	argv := append([]string{}, r.Program.Argv...)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{kubeconfig}", r.cluster.Kubeconfig())
	}
	var isolation *run.Isolation
	r.stopping = func() {}
	if !r.Outside {
		isolation = &run.Isolation{
			Socket: filepath.Join(r.dir, "api.sock"), Address: strings.TrimPrefix(r.cluster.Config().Host, "https://"), Visible: r.Visible,
		}
		stop, err := isolation.Forward()
		if err != nil {
			return err
		}
		r.stopping = stop
	}
	environment := append([]string{"KUBECONFIG=" + r.cluster.Kubeconfig()}, r.Program.Environment...)
	process, err := run.StartProcess(r.Supervisor, argv, environment, isolation, nil)
	if err != nil {
		return err
	}
	r.process = process
	r.history.wake()
	r.trace.Add("operator", "start", "")
	return nil
}

// restart starts the program again after it has ended. What a dead process holds is released at
// once: in a cluster its Lease expires.
func (r *runner) restart() error {
	trial.ReleaseLeases(r.cluster)
	r.boundary.setDown(false)
	return r.start()
}

// step carries out a step of the script and waits until the operator is idle.
func (r *runner) step(ctx context.Context, i int, s Step, reference *reference) error {
	if err := s.do(r); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	r.history.wake()
	var want state
	var chance map[string]bool
	if reference != nil {
		want, chance = reference.states[i], reference.chance
	}
	idle, err := r.settle(ctx, want, chance)
	if err != nil || r.gaveUp() {
		return err
	}
	r.trace.Add("sim", "checkpoint", fmt.Sprint(i+1, ": ", s))
	if r.heal() {
		reference = nil // it was in the way of an operator that does not become idle
	}
	now := r.now()
	r.checkpoints = append(r.checkpoints, now)
	r.world.see(func(j *judge.Judge) { j.Idle(judge.Idle{Checkpoint: i + 1}) })
	r.compare(i, s, idle, now.differences(want, chance), reference)
	if idle && r.boundary.checkpoint(i+1) {
		return r.proveIdle(ctx)
	}
	return nil
}

// now returns the state of the cluster.
func (r *runner) now() state {
	return r.history.of(r.cluster.Objects(), func(o *snapshot.Object) bool {
		if r.Transitions != nil {
			transition.Forget(o.Resource.Group, o.Content) // what says how the object came to be as it is
		}
		return true
	}).renamed(r.minted)
}

// compare records what is not as it should be at a checkpoint. That a run differs is said once:
// what follows differs, too.
func (r *runner) compare(i int, s Step, idle bool, differences []oracle.Difference, reference *reference) {
	if !idle {
		r.violate(oracle.BecomesIdle, i, fmt.Sprintf("after %q, the operator still changes something new after %s", s, r.Settle))
	}
	w := wants{oracle.SameEnd, "as without the fault"}
	if s.wants != nil {
		w = *s.wants
	}
	if reference == nil || reference.states[i].things == nil || len(differences) == 0 || w.name == "" {
		return
	}
	if r.violates(w.name) {
		return
	}
	r.violate(w.name, i, fmt.Sprintf("%s after %q, the cluster is not %s", r.Settle, s, w.text))
	r.violations[len(r.violations)-1].Differences = differences
}

func (r *runner) violates(name oracle.Name) bool {
	return slices.ContainsFunc(r.violations, func(v oracle.Violation) bool { return v.Oracle == name })
}

func (r *runner) violate(name oracle.Name, i int, text string) {
	r.violations = append(r.violations, oracle.Violation{Oracle: name, Text: text, Checkpoint: i + 1, Entry: r.trace.Len()})
	r.trace.Add("sim", "oracle", string(name)+": "+text)
}

// settle waits until nothing new has happened for a while and the cluster is as wanted, at most for
// Options.Settle after the last thing that was new. It reports whether the operator became idle.
func (r *runner) settle(ctx context.Context, want state, chance map[string]bool) (idle bool, err error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	clock := r.history.clock
	begun, enough := clock.now(), r.Quiet
	if want.things == nil {
		enough *= 2 // nothing else says that all is done
	}
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-r.cluster.Done():
			return false, r.cluster.Err()
		case <-r.spent:
			return false, nil
		case <-r.killed:
			r.stop()
			r.trace.Add("operator", "crash", "")
			if err := r.restart(); err != nil {
				return false, err
			}
		case <-r.process.Ended():
			if err := r.endedByItself(); err != nil || r.gaveUp() {
				return true, err
			}
		case <-ticker.C:
			clock.look(r.process.Starved(), lookEvery)
		}
		quiet := r.history.idle()
		works, caughtUp := r.boundary.works()
		works = works && (caughtUp || quiet >= r.Settle) // it may not need all that those before it have watched
		if r.continues(quiet >= enough && works) {
			r.history.wake()
			begun = clock.now()
			continue
		}
		if quiet >= enough && works && (quiet >= r.Settle || r.isAs(want, chance)) {
			return true, nil
		}
		if clock.now()-begun >= 4*r.Settle {
			return quiet >= enough, nil
		}
	}
}

// continues does what others do later, if it is time to, and reports whether there was anything.
func (r *runner) continues(idle bool) (done bool) {
	r.world.do(func() { done = r.world.later.due() || idle && r.world.later.idle() })
	return done
}

// heal does all that others do later, and reports whether there was anything.
func (r *runner) heal() (done bool) {
	for r.continues(true) {
		done = true
	}
	return done
}

// isAs reports whether the cluster is as wanted. Where nothing is known, it is enough that nothing is
// being deleted any more that only the operator holds: a cleanup may take longer than anything else
// is quiet.
func (r *runner) isAs(want state, chance map[string]bool) bool {
	if want.things != nil {
		return len(r.now().differences(want, chance)) == 0
	}
	leaving := false
	r.world.see(func(j *judge.Judge) { leaving = j.Leaving() })
	return !leaving
}

// endedByItself starts a program again, as a kubelet does, some times. That it has ended is no
// mistake by itself: many operators end when the API server refuses what they need at their start.
func (r *runner) endedByItself() error {
	last := r.process.Last(logLines)
	for i, line := range last {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			r.violate(oracle.NoPanic, len(r.checkpoints), strings.Join(last[i:min(len(last), i+40)], "\n"))
			break
		}
	}
	r.logs = append(r.logs, last...)
	r.trace.Add("operator", "end", r.process.HowItEnded())
	r.restarts++
	if r.gaveUp() {
		r.violate(oracle.OperatorRuns, len(r.checkpoints), fmt.Sprintf("the operator ends again and again: %s\n%s", r.process.HowItEnded(), strings.Join(last[max(0, len(last)-10):], "\n")))
		return nil
	}
	return r.restart()
}

// proveIdle starts an idle operator again, which must change nothing.
func (r *runner) proveIdle(ctx context.Context) error {
	r.boundary.setDown(true)
	r.boundary.suspend(true)
	defer r.boundary.suspend(false)
	r.stop()
	r.world.see(func(j *judge.Judge) { j.Prove("a restart") })
	defer r.world.see(func(j *judge.Judge) { j.Prove("") })
	if err := r.restart(); err != nil {
		return err
	}
	_, err := r.settle(ctx, state{}, nil)
	return err
}
