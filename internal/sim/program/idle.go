// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"maps"
	"time"
)

// habits are how an operator works without faults, as runs without faults have shown.
type habits struct {
	asked map[string]bool // what it asks for at its start, before there is an object
	pause time.Duration   // the longest after which it comes back by itself, of those below Options.Quiet
}

// habitsOf returns what several runs have in common.
func habitsOf(runs []*runner) *habits {
	h := &habits{asked: runs[0].asked}
	for _, r := range runs {
		h.pause = max(h.pause, r.boundary.calm.longest())
		maps.DeleteFunc(h.asked, func(what string, _ bool) bool { return !r.asked[what] })
	}
	return h
}

// enough returns for how long nothing new must have happened until the operator is idle. That is
// Options.Quiet, and twice as long where the state to reach is not known, as nothing else says then that
// all is done. A part of it is enough for an operator that is calm, because it does nothing but wait for a
// timer then, and there is no such timer:
//
//   - in this step of the script, and while the operator started before the first one, no fault
//     has struck, what it has done is not undone, and no process was started again. So the timers are those
//     of the runs without faults, or those that an earlier fault has left.
//   - In none of these runs, and so far not in this one, has the operator come back by itself after a
//     pause of half as long.
//   - All its watches are open: a client that opens one again may wait before.
//   - No player has anything to do before Options.Quiet is over.
//
// In the step in which a fault strikes, where timers begin that are not known, it is Options.Quiet.
func (r *runner) enough(known bool) time.Duration {
	if !known {
		return 2 * r.Quiet
	}
	if part, ok := r.part(); ok && r.isCalm(part) {
		return part
	}
	return r.Quiet
}

// isReady reports whether an operator that was started has asked for what it asks for at its start.
func (r *runner) isReady() bool {
	works, caughtUp := r.boundary.works()
	enough := r.Quiet / 2
	if part, ok := r.part(); ok && r.boundary.hasAsked(r.habits.asked) && r.isCalm(part/2) {
		enough = part / 2
	}
	return works && caughtUp && r.history.idle() >= enough
}

// part returns which part of Options.Quiet is enough for a calm operator; ok is false if none is.
func (r *runner) part() (part time.Duration, ok bool) {
	if r.habits == nil || len(r.plan.Faults) == 0 {
		return 0, false
	}
	part = waits(r.Quiet, max(r.habits.pause, r.boundary.calm.longest()))
	return part, part < r.Quiet
}

// isCalm reports whether the operator has been calm for some time in a step that nothing has disturbed, and
// nothing is about to change what it sees.
func (r *runner) isCalm(d time.Duration) bool {
	times, watches := r.boundary.disturbed()
	r.disturbances.now = times
	if times > r.disturbances.before || !watches || r.boundary.calm.lasts() < d {
		return false
	}
	due := r.due()
	return due.IsZero() || time.Until(due) > r.Quiet-r.history.idle()
}

// disturbances are how many faults have struck, and processes were started again.
type disturbances struct {
	now    int // as it was seen last
	before int // when the step before ended
}
