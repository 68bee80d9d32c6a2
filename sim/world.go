// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// A World is one run of a workload: an API server, the external systems, the processes of the operator, and the script, which gets it to act
// in it.
type World struct {
	workload  *Workload
	plan      fault.Plan
	quiet     time.Duration
	scheme    *runtime.Scheme
	server    *apiserver.Server
	externals map[string]*inventory
	trace     *Trace
	reference *reference // nil in the run that becomes it
	without   oracleSet

	wake chan struct{}

	mu        sync.Mutex // guards what follows, down to the blank line
	parked    []*parked
	round     uint64
	processes []*Process
	running   int // operators that have not returned
	usesClock bool

	eventWrites int // Events that were written

	// Only the driver, and what it calls, uses the rest.
	order        *rand.Rand
	over         bool
	aborted      bool
	watches      []*watch
	watchCount   int
	timers       []timer
	endings      []func() // watches that are about to end
	settling     *settle
	lastActivity time.Time
	workAt       time.Time // when the cluster's own controllers look at what there is; zero: nothing to look at
	heals        []heal
	faults       []*pending
	paused       map[*Process]time.Time
	pasts        []past
	outages      []outage
	mutations    map[string]bool
	fights       map[string]*fight
	recreations  map[string]func() // objects that are created again when their name is free
	stopping     bool
	crashes      int
	clients      int
	detours      int

	writes, reads, calls, requests int
	events                         map[string]int
	catalog                        catalog

	ledger
	checkpoints []snapshot
	violations  []oracle.Violation
}

// heal ends something that a fault broke, once everything is at rest.
type heal struct {
	name string
	do   func()
}

func newWorld(workload *Workload, crds []*apiextensionsv1.CustomResourceDefinition, plan fault.Plan, reference *reference, without oracleSet) (*World, error) {
	w := &World{
		workload: workload, plan: plan, scheme: schemeOf(workload), reference: reference, without: without,
		trace: &Trace{start: time.Now()}, wake: make(chan struct{}, 1), order: newOrder(plan.Seed), lastActivity: time.Now(),
		externals: map[string]*inventory{}, paused: map[*Process]time.Time{}, events: map[string]int{}, mutations: map[string]bool{},
		fights: map[string]*fight{}, recreations: map[string]func(){}, ledger: newLedger(), quiet: workload.quiet(),
	}
	w.server = apiserver.New(apiserver.Options{Now: time.Now, Seed: plan.Seed + 1})
	if err := w.server.Install(crds...); err != nil {
		return nil, fmt.Errorf("installing the definitions: %w", err)
	}
	w.server.OnChange(w.changed)
	for _, e := range workload.Externals {
		if e.Identity < IdentityName || e.Identity > IdentityNone {
			return nil, fmt.Errorf("external system %q: set its Identity", e.Name)
		}
		w.externals[e.Name] = newInventory(e, time.Now)
	}
	for _, f := range plan.Faults {
		w.faults = append(w.faults, &pending{Fault: f})
	}
	return w, nil
}

// tell is the whole run as seen by the script's goroutine.
func (w *World) tell() {
	defer func() {
		w.shutDown()
		w.park(&parked{ctx: context.Background(), kind: parkedStory, key: "the end", do: func() error { w.over = true; return nil }})
	}()
	defer w.recoverScript()
	w.must("prepare", w.prepare)
	w.workload.Script(w)
	w.Settle()
	w.must("note the end", func() error { w.ended = len(w.checkpoints) - 1; return nil })
	w.proveRest()
}

func (w *World) recoverScript() {
	switch r := recover().(type) {
	case nil:
	case scriptError:
		if !errors.Is(r.err, errAborted) {
			w.violate(oracle.ScriptRuns, r.err.Error())
		}
		w.aborted = true
	default:
		w.violate(oracle.ScriptRuns, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		w.aborted = true
	}
}

// prepare creates the objects of the workload and starts the operator.
func (w *World) prepare() error {
	for _, obj := range w.workload.Objects {
		if err := w.createObject("user", obj); err != nil {
			return fmt.Errorf("creating %s of Workload.Objects: %w", w.describeObject(obj), err)
		}
	}
	w.notePlanted()
	w.injectStart()
	w.start(0)
	return nil
}

// start starts a process of the operator.
func (w *World) start(crashesSoFar int) *Process {
	ctx, cancel := context.WithCancelCause(context.Background())
	w.mu.Lock()
	p := &Process{world: w, name: "operator", cancel: cancel}
	if n := len(w.processes); n > 0 {
		p.name = fmt.Sprintf("operator-%d", n+1)
	}
	w.processes = append(w.processes, p)
	w.running++
	w.mu.Unlock()
	w.trace.add(p.name, "start", "")
	go w.runProcess(ctx, p, crashesSoFar)
	return p
}

// runProcess is the life of one process.
func (w *World) runProcess(ctx context.Context, p *Process, crashesSoFar int) {
	err := w.workload.Operator(ctx, p)
	w.mu.Lock()
	p.ended = true
	w.running--
	dead, stopping := p.dead, p.stopping || w.stopping
	w.mu.Unlock()
	if !dead && !stopping {
		w.park(&parked{ctx: context.Background(), kind: parkedStory, key: "exit of " + p.name, do: func() error {
			w.exited(p, err, crashesSoFar)
			return nil
		}})
	}
	w.wakeUp()
}

// exited restarts an operator that has ended by itself, as a Deployment would.
func (w *World) exited(p *Process, err error, crashesSoFar int) {
	text := "ended without an error"
	if err != nil {
		text = err.Error()
	}
	w.trace.add(p.name, "exit", text)
	if w.reference == nil && !w.anyFired() {
		w.violate(oracle.OperatorRuns, "the operator ended by itself, without a fault: "+text)
		w.abort()
		return
	}
	w.active()
	w.after(min(time.Minute, time.Second<<min(crashesSoFar, 10)), func() {
		if !w.stopping {
			w.start(crashesSoFar + 1)
		}
	})
}

// crash kills a process at once: nothing that it does from now on reaches anybody.
func (w *World) crash(p *Process) {
	w.mu.Lock()
	already := p.dead
	p.dead = true
	var orphans []*parked
	rest := w.parked[:0]
	for _, q := range w.parked {
		if q.process == p {
			orphans = append(orphans, q)
		} else {
			rest = append(rest, q)
		}
	}
	w.parked = rest
	w.mu.Unlock()
	if already {
		return
	}
	w.trace.add(p.name, "crash", "")
	for _, q := range orphans {
		q.answers <- answer{err: errCrashed}
	}
	for _, o := range w.watches {
		if o.process == p {
			o.body.end(errCrashed)
		}
	}
	delete(w.paused, p)
	p.cancel(errCrashed)
	w.active()
}

// restartAfter starts a new process a moment after another has gone.
func (w *World) restartAfter(d time.Duration) {
	w.crashes++
	w.after(d, func() {
		if !w.stopping && len(w.alive()) == 0 { // two faults can end the same process
			w.start(0)
		}
	})
}

// stop tells a process to end. It goes on to work until it does.
func (w *World) stop(p *Process) {
	w.mu.Lock()
	p.stopping = true
	w.mu.Unlock()
	w.trace.add(p.name, "stop", "")
	p.cancel(context.Canceled)
	w.active()
}

func (w *World) isDead(p *Process) bool {
	if p == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return p.dead
}

func (w *World) isPaused(p *Process) bool {
	until, ok := w.paused[p]
	return ok && time.Now().Before(until)
}

// alive returns the processes that work.
func (w *World) alive() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*Process
	for _, p := range w.processes {
		if !p.dead && !p.ended && !p.stopping {
			list = append(list, p)
		}
	}
	return list
}

func (w *World) clockUsed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.usesClock = true
}

// abort ends the run as soon as possible.
func (w *World) abort() {
	w.aborted = true
	if w.settling != nil {
		w.settling.done <- errAborted
		w.settling = nil
	}
}

// shutDownTime is how long, in virtual time, an operator may take to end after it was told to.
const shutDownTime = 2 * time.Minute

// shutDown ends all processes, and looks for what they left behind.
func (w *World) shutDown() {
	w.park(&parked{ctx: context.Background(), kind: parkedStory, key: "shut down", do: func() error {
		w.stopping = true
		w.timers = nil
		for _, p := range w.alive() {
			w.stop(p)
		}
		return nil
	}})
	for deadline := time.Now().Add(shutDownTime); time.Now().Before(deadline); time.Sleep(time.Second) {
		w.mu.Lock()
		running := w.running
		w.mu.Unlock()
		if running == 0 {
			return
		}
	}
	w.violate(oracle.NoGoroutineLeft, fmt.Sprintf("the operator has not returned within %s after its context was canceled", shutDownTime))
}

func (w *World) notePlanted() {
	w.prerequisites = sortedKeys(w.written)
	for _, o := range w.server.Objects() {
		if o.Resource.Resource != "secrets" || o.Resource.Group != "" {
			continue
		}
		w.plant(o.Content)
	}
}
