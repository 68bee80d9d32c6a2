// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/sim/schedule"
)

// How long things last, in virtual time.
const (
	restartTime = time.Second // from a crash to the next process
	leaderTime  = time.Minute // how long two processes work beside each other
	startTime   = time.Second // from the start of a process until it has made its informers
	mostStart   = time.Minute // until its caches have synced
)

// processes are the lives of the operator in one run: it starts, crashes, stops and restarts them.
type processes struct {
	schedule *schedule.Schedule
	trace    *trace.Trace

	operate func(ctx context.Context, p *Process) error
	do      func(key string, do func() error) error // lets the driver do something at its turn
	create  func(name string, cancel context.CancelCauseFunc, done <-chan struct{}) *Process
	crashed func(*Process)                   // is called when a process has crashed
	ended   func(text string) (restart bool) // is called when one has ended by itself

	mu        sync.Mutex // guards what follows, and the fields of processes that say so
	list      []*Process
	running   int // processes whose Operator has not returned
	closed    bool
	usesClock bool
}

// start starts a process.
func (ps *processes) start(crashesSoFar int) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ps.mu.Lock()
	name := "operator"
	if n := len(ps.list); n > 0 {
		name = fmt.Sprintf("operator-%d", n+1)
	}
	p := ps.create(name, cancel, ctx.Done())
	ps.list = append(ps.list, p)
	ps.running++
	ps.mu.Unlock()
	ps.trace.Add(name, "start", "")
	go ps.live(ctx, p, crashesSoFar)
}

// live is the life of one process.
func (ps *processes) live(ctx context.Context, p *Process, crashesSoFar int) {
	err := ps.operate(ctx, p)
	ps.mu.Lock()
	p.ended = true
	ps.running--
	wanted := p.stopping || ps.closed
	ps.mu.Unlock()
	if !wanted && !ps.schedule.Dropped(p.owner) {
		_ = ps.do("exit of "+p.owner.Name, func() error { //nolint:errcheck // it returns none
			ps.exited(p, err, crashesSoFar)
			return nil
		})
	}
	ps.schedule.Wake()
}

// exited restarts a process that has ended by itself, after as long a time as kubelet takes.
func (ps *processes) exited(p *Process, err error, crashesSoFar int) {
	text := "ended without an error"
	if err != nil {
		text = err.Error()
	}
	ps.trace.Add(p.owner.Name, "exit", text)
	if !ps.ended(text) {
		return
	}
	ps.schedule.Active()
	ps.schedule.After(min(time.Minute, time.Second<<min(crashesSoFar, 10)), func() {
		if !ps.isClosed() {
			ps.start(crashesSoFar + 1)
		}
	})
}

// crash kills a process at once: nothing that it does from now on has an effect.
func (ps *processes) crash(p *Process) {
	if !ps.schedule.Drop(p.owner, inject.ErrCrashed) {
		return
	}
	ps.trace.Add(p.owner.Name, "crash", "")
	ps.crashed(p)
	p.cancel(inject.ErrCrashed)
	ps.schedule.Active()
}

func (ps *processes) crashAll() {
	for _, p := range ps.alive() {
		ps.crash(p)
	}
}

// restart starts a process a moment after another one has crashed or was stopped.
func (ps *processes) restart() {
	ps.schedule.After(restartTime, func() {
		if !ps.isClosed() && len(ps.alive()) == 0 { // two faults can end the same process
			ps.start(0)
		}
	})
}

// areStarting reports whether a process may not have started its caches. To cancel the context of a
// manager with caches of its own then, which are no startingCache, makes it spin until they have
// synced, without time passing.
func (ps *processes) areStarting() bool {
	return slices.ContainsFunc(ps.alive(), func(p *Process) bool {
		return time.Since(p.began) < startTime || !p.caches.haveSynced() && time.Since(p.began) < mostStart
	})
}

// stop cancels the context of a process. It continues to work until it returns.
func (ps *processes) stop(p *Process) {
	ps.mu.Lock()
	p.stopping = true
	ps.mu.Unlock()
	ps.trace.Add(p.owner.Name, "stop", "")
	p.cancel(context.Canceled)
	ps.schedule.Active()
}

// restartAll stops all processes, and starts a new one.
func (ps *processes) restartAll() {
	for _, p := range ps.alive() {
		ps.stop(p)
	}
	ps.schedule.After(restartTime, func() { ps.start(0) })
}

// close stops all processes for good.
func (ps *processes) close() {
	ps.mu.Lock()
	ps.closed = true
	ps.mu.Unlock()
	for _, p := range ps.alive() {
		ps.stop(p)
	}
}

func (ps *processes) isClosed() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.closed
}

// alive returns the processes that work.
func (ps *processes) alive() []*Process {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var list []*Process
	for _, p := range ps.list {
		if !p.ended && !p.stopping && !ps.schedule.Dropped(p.owner) {
			list = append(list, p)
		}
	}
	return list
}

// failing returns the objects whose last reconcile has failed.
func (ps *processes) failing() []judge.Failing {
	var list []judge.Failing
	for _, p := range ps.alive() {
		list = append(list, p.results.failed()...)
	}
	return list
}

// idle returns what the processes are like while the operator is idle.
func (ps *processes) idle(checkpoint int) judge.Idle {
	i := judge.Idle{Checkpoint: checkpoint, Failing: ps.failing()}
	for _, p := range ps.alive() {
		i.Unwatched = append(i.Unwatched, p.reads.unwatched()...)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.list {
		i.Altered = append(i.Altered, p.caches.changed()...)
	}
	return i
}

func (ps *processes) numRunning() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.running
}

// skewOf returns how far the clock of a process is off.
func (ps *processes) skewOf(p *Process) time.Duration {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return p.skew
}

// useClock records that the operator reads clocks: only then there are plans in which they jump.
func (ps *processes) useClock() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.usesClock = true
}

func (ps *processes) clockUsed() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.usesClock
}

// victim is a process as faults see it.
type victim struct {
	all *processes
	p   *Process
}

func (v victim) Crash() {
	v.all.crash(v.p)
	v.all.restart()
}

func (v victim) Stop() {
	v.all.stop(v.p)
	v.all.restart()
}

// StartSecond starts a process beside the victim, which crashes after leaderTime. Two that fight slow
// each other down, and what is left of them needs as long to see that the fight is over.
func (v victim) StartSecond() {
	v.all.start(0)
	v.all.schedule.After(leaderTime, func() { // no third one starts while the second one works
		v.Crash()
		v.all.schedule.SlowDown(leaderTime)
	})
}

func (v victim) JumpClock(by time.Duration) {
	v.all.mu.Lock()
	defer v.all.mu.Unlock()
	v.p.skew += by
}
