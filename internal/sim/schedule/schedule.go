// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package schedule decides what happens next in a simulation. It knows nothing of Kubernetes.
//
// Everything that leaves a goroutine under test becomes a [Turn], and waits. When no goroutine of
// the bubble can continue by itself, the schedule lets exactly one thing happen: a timer that is
// due, a turn, or a piece of work of a [Source]. When there is nothing to do, it sleeps, and
// virtual time passes. So the order of everything that is visible from outside is decided
// here, and does not depend on how the runtime schedules goroutines.
package schedule

import (
	"math/rand/v2"
	"testing/synctest"
	"time"
)

// A Source has work of its own that can happen in between: watch events to deliver, or controllers
// of the cluster that run.
type Source interface {
	// Step lets one thing happen now, and reports whether there was one.
	Step() bool

	// Due returns when Step should be called again although nothing else happens. The zero time
	// stands for never.
	Due() time.Time
}

// Options are the settings of a schedule.
type Options struct {
	// Seed chooses the order of what can happen in any order. With 0, sources that were added as
	// the first come first, then turns in the order in which they began to wait.
	Seed uint64

	// Quiet is how long nothing may have happened until everything is idle.
	Quiet time.Duration

	// Backoff is what Quiet grows to at least after a failure: the longest wait of a process that
	// backs off exponentially, after which it tries again.
	Backoff time.Duration
}

// A Schedule is the order of one run. Run and everything that it calls belong to one goroutine, the
// driver. Other goroutines may call only Wait, Dropped and Wake.
type Schedule struct {
	queue
	timers
	idleness
	order

	first, last Source
	waited      int      // the turns since last was asked
	next        []func() // see OneByOne
	over        bool
}

// mostWaited is how many turns come before the last source is asked all the same: on a cluster, an
// operator that does not stop leaves the garbage collector its time, too.
const mostWaited = 100

// New returns a schedule without sources.
func New(o Options) *Schedule {
	s := &Schedule{order: newOrder(o.Seed)}
	s.wake = make(chan struct{}, 1)
	s.idleness = idleness{quiet: o.Quiet, least: o.Quiet, backoff: o.Backoff, since: time.Now()}
	return s
}

// Sources sets the sources that come before and after turns when Seed is 0.
func (s *Schedule) Sources(first, last Source) { s.first, s.last = first, last }

// Run lets one thing happen after the other until Stop is called.
func (s *Schedule) Run() {
	for !s.over {
		synctest.Wait()
		if !s.step() && !s.becomeIdle(s.timers.any()) {
			s.sleep()
		}
	}
}

// Stop ends Run after what happens at the moment.
func (s *Schedule) Stop() { s.over = true }

// OneByOne queues something that is followed by nothing else until the goroutines that it has woken
// wait again. Each of them may draw a random number, such as a jitter: two at a time would draw
// them in any order.
func (s *Schedule) OneByOne(do func()) { s.next = append(s.next, do) }

// step lets one thing happen, and reports whether there was one.
func (s *Schedule) step() bool {
	s.queue.newRound()
	if ran := s.timers.run(time.Now(), s.Active); ran {
		return true // what a timer has started, such as a process, runs until it waits
	}
	if len(s.next) > 0 {
		do := s.next[0]
		s.next = s.next[1:]
		do()
		return true
	}
	choices := [3]func() bool{stepOf(s.first), s.takeTurn, s.askLast}
	s.shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
	if s.waited >= mostWaited && s.askLast() {
		return true
	}
	for _, choice := range choices {
		if choice() {
			return true
		}
	}
	return false
}

func stepOf(source Source) func() bool {
	if source == nil {
		return func() bool { return false }
	}
	return source.Step
}

func (s *Schedule) askLast() bool {
	s.waited = 0
	return stepOf(s.last)()
}

// takeTurn does the next turn that may be done now.
func (s *Schedule) takeTurn() bool {
	t := s.queue.choose(time.Now(), s.Pick)
	if t == nil {
		return false
	}
	s.waited++
	if t.Takes > 0 {
		time.Sleep(t.Takes)
		synctest.Wait()
	}
	if s.queue.remove(t) && t.Ctx.Err() == nil { // else it has given up in the meantime
		t.Do(t)
	}
	return true
}

// longestSleep is how long the schedule sleeps at most when nothing is due.
const longestSleep = time.Hour

// sleep waits until something begins to wait or is due.
func (s *Schedule) sleep() {
	now := time.Now()
	d := longestSleep
	for _, at := range []time.Time{s.timers.due(), dueOf(s.first), dueOf(s.last), s.queue.due(now), s.idleness.due(now)} {
		if !at.IsZero() {
			d = min(d, at.Sub(now))
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	}
}

func dueOf(source Source) time.Time {
	if source == nil {
		return time.Time{}
	}
	return source.Due()
}

// Pause lets an owner stand still. The turn that is taken at the moment is put back.
func (s *Schedule) Pause(t *Turn, d time.Duration) {
	s.queue.pause(t, time.Now().Add(d))
	s.After(d, func() {})
}

// order is the random order of what can happen in any order.
type order struct{ random *rand.Rand } // nil: the first comes first

func newOrder(seed uint64) order {
	if seed == 0 {
		return order{}
	}
	return order{rand.New(rand.NewPCG(seed, 0x5bd1e995))}
}

// Pick returns a number below n: 0, unless the order is random.
func (o order) Pick(n int) int {
	if o.random == nil {
		return 0
	}
	return o.random.IntN(n)
}

func (o order) shuffle(n int, swap func(i, j int)) {
	if o.random != nil {
		o.random.Shuffle(n, swap)
	}
}

// earlier returns the earlier of two times, of which the zero time stands for never.
func earlier(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	}
	if b.Before(a) {
		return b
	}
	return a
}
