// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"slices"
	"time"
)

// later is what others do later in a run, in real time: what the schedule of virtual time is there. As
// there, time passes at once while everything is idle, so that no run lasts as long as a stranger's
// object stays. What has the turn uses it.
type later struct {
	clock  *clock
	quiet  time.Duration
	most   time.Duration // the longest wait: an operator that counts its tries is never idle
	timers []timer       // in the order in which they are due
	heals  []func()
}

type timer struct {
	at time.Duration // by clock
	do func()
}

// After does something later.
func (l *later) After(d time.Duration, do func()) {
	l.timers = append(l.timers, timer{l.clock.now() + min(d, l.most), do})
	slices.SortStableFunc(l.timers, func(a, b timer) int { return int(a.at - b.at) })
}

// WhenIdle does something when everything is idle.
func (l *later) WhenIdle(do func()) { l.heals = append(l.heals, do) }

// SlowDown does nothing: the end of a failure is waited for until the cluster is as without it.
func (l *later) SlowDown(time.Duration) {}

// Quiet returns how long nothing may have happened until everything is idle.
func (l *later) Quiet() time.Duration { return l.quiet }

// due does what is due, and reports whether there was anything.
func (l *later) due() (done bool) {
	for len(l.timers) > 0 && l.timers[0].at <= l.clock.now() {
		l.first()
		done = true
	}
	return done
}

func (l *later) first() {
	next := l.timers[0]
	l.timers = l.timers[1:]
	next.do()
}

// idle does what comes next while everything is idle: the first of what waits for its time, or if
// nothing does, all that waits for idleness. It reports whether there was anything.
func (l *later) idle() (done bool) {
	if len(l.timers) > 0 {
		l.first()
		return true
	}
	heals := l.heals
	l.heals = nil
	for _, heal := range heals {
		heal()
	}
	return len(heals) > 0
}
