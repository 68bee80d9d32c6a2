// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
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
	due      func() time.Time // when a player does something next; zero if none waits
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
	asked    map[string]bool // what it has asked for until then

	checkpoints  []snapshot.Snapshot
	disturbed    map[int]bool // checkpoints, from 0, at which others were still in the way
	load         load
	busiest      float64 // of the shares of a processor that the idle operator has used
	resting      bool    // without faults, it uses next to nothing then
	habits       *habits // nil if they are not known
	disturbances disturbances
	unlike       moment // where the cluster was not as wanted when it was looked at last
	violations   []oracle.Violation
}

// run carries out a run of a plan. reference has the states to reach; it is nil in a run without
// faults.
func (o *Options) run(ctx context.Context, p fault.Plan, reference *reference) (_ *runner, err error) {
	t := newTrace()
	r := &runner{Options: o, plan: p, trace: t, killed: make(chan struct{}, 1), spent: make(chan struct{}), stopping: func() {}}
	clock := newClock()
	r.world = &world{judge: o.newJudge(p, reference.judged(), t, clock), later: &later{clock: clock, quiet: o.Quiet, most: o.Settle}}
	r.history, r.disturbed = newHistory(t, clock), map[int]bool{}
	r.boundary = newBoundary(r.world, t)
	if reference == nil {
		r.boundary.catalog = &inject.Catalog{}
	} else {
		maps.Copy(r.boundary.watched, reference.watched)
		r.resting, r.habits = reference.resting, reference.habits
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
	r.due = r.cluster.Due
	r.world.begin(r.cluster.Exclusively, p, r.boundary, t, r.boundary.catalog)
	if err := r.start(); err != nil {
		return nil, err
	}
	defer func() { r.process.Kill(); r.stopping() }()
	r.ready(ctx)
	r.watched, r.asked = r.boundary.begun()
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
	compared := slices.Clone(r.checkpoints)
	for i := range r.disturbed {
		compared[i] = nil
	}
	r.world.see(func(j *judge.Judge) {
		j.End(judge.End{Logs: logs, Checkpoints: compared})
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
			r.look()
		}
		if r.isReady() {
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
	r.world.see(func(j *judge.Judge) { reference = j.Reference(slices.Clone(r.checkpoints), requests) })
	return reference
}

// start starts the program.
func (r *runner) start() error {
	r.stopping()
	in := trial.Confinement{Supervisor: r.Supervisor, Directory: r.dir, Outside: r.Outside, Visible: r.Visible}
	process, release, err := r.Program.Start(r.cluster, in, nil)
	if err != nil {
		r.stopping = func() {}
		return err
	}
	r.process, r.stopping = process, release
	r.history.wake()
	r.boundary.calm.start()
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
	if i > 0 && !r.disturbed[i-1] {
		r.disturbances.before = r.disturbances.now
	}
	if err := s.do(r); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	r.history.wake()
	r.boundary.calm.show()
	idle, err := r.settle(ctx, reference.wanted(i))
	if err != nil || r.gaveUp() {
		return err
	}
	r.trace.Add("sim", "checkpoint", fmt.Sprint(i+1, ": ", s))
	if r.heal() { // it was in the way of an operator that does not become idle
		r.disturbed[i] = true
	}
	r.checkpoints = append(r.checkpoints, r.now())
	r.world.see(func(j *judge.Judge) { j.Idle(judge.Idle{Checkpoint: i + 1}) })
	if !idle {
		r.violate(oracle.BecomesIdle, i, fmt.Sprintf("after %q, the operator still changes something new after %s", s, r.Settle))
	}
	if s.wants != nil {
		r.compare(i, s, reference.wanted(i))
	}
	if idle && r.boundary.checkpoint(i+1) {
		return r.proveIdle(ctx)
	}
	return nil
}

// now returns a picture of the cluster.
func (r *runner) now() (s snapshot.Snapshot) {
	r.world.turn(func(server *apiserver.Server) {
		j := r.world.judge
		s = snapshot.Take(snapshot.Source{
			Objects: server.Objects(), Names: j.Names(), Made: j.Made, IsVersion: j.IsVersion, Compared: r.history.isCompared,
			Normalize: func(o *snapshot.Object) bool {
				if r.Transitions != nil {
					transition.Forget(o.Resource.Group, o.Content) // what says how the object came to be as it is
				}
				return true
			},
		})
	})
	return r.learned.Rename(s)
}

// compare records what is not as it should be after a step of a transition. That a run differs is said
// once: what follows differs, too. After other steps, the oracles compare.
func (r *runner) compare(i int, s Step, want snapshot.Snapshot) {
	if want == nil || s.wants.name == "" || r.violates(s.wants.name) || r.disturbed[i] {
		return
	}
	if differences := judge.Between(want, r.checkpoints[i], r.learned.Mask); len(differences) > 0 {
		r.violate(s.wants.name, i, fmt.Sprintf("%s after %q, the cluster is not %s", r.Settle, s, s.wants.text))
		r.violations[len(r.violations)-1].Differences = differences
	}
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
func (r *runner) settle(ctx context.Context, want snapshot.Snapshot) (idle bool, err error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	clock := r.history.clock
	begun := clock.now()
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
			r.look()
		}
		quiet, enough := r.history.idle(), r.enough(want != nil)
		works, caughtUp := r.boundary.works()
		works = works && (caughtUp || quiet >= r.Settle) // it may not need all that those before it have watched
		if r.continues(quiet >= enough && works) {
			r.history.wake()
			begun = clock.now()
			continue
		}
		if quiet >= enough && works && (quiet >= r.Settle || r.isAs(want)) {
			r.spins(quiet)
			return true, nil
		}
		if clock.now()-begun >= 4*r.Settle {
			if quiet >= enough {
				r.spins(quiet)
			}
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

// A moment is a step, and the resource version of the last change.
type moment struct {
	checkpoint int
	version    uint64
}

// isAs reports whether the cluster is as wanted. Where nothing is known, it is enough that nothing is
// being deleted any more that only the operator holds: a cleanup may take longer than anything else
// is quiet.
func (r *runner) isAs(want snapshot.Snapshot) (is bool) {
	if want == nil {
		r.world.see(func(j *judge.Judge) { is = !j.Leaving() })
		return is
	}
	here := moment{len(r.checkpoints), r.history.last()}
	if here == r.unlike {
		return false
	}
	now := r.now()
	if r.Transitions == nil {
		r.world.see(func(j *judge.Judge) { is = j.IsAsWanted(here.checkpoint, now) })
	} else {
		is = len(judge.Between(want, now, r.learned.Mask)) == 0
	}
	if !is {
		r.unlike = here
	}
	return is
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
	_, err := r.settle(ctx, nil)
	return err
}
