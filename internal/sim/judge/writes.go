// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strconv"
)

// sameWork demands that the operator creates and deletes no more than without a fault. What it does
// while it is proved to be idle is silentWhenIdle's business, or comes by the clock. In a run that
// takes longer than the one without faults, more comes by the clock. It is said once of an object,
// at the first creation or deletion too many.
type sameWork struct{ said map[string]bool }

func (o sameWork) OnChange(l *ledger, c *change, v violate) {
	if l.reference == nil || l.addsWork || !c.byOperator || c.orphan || l.duringProof() {
		return
	}
	check := func(done string, got, want int) {
		if what := done + " " + c.canonical; !o.said[what] && got > want+lateSlots(l, what) {
			o.said[what] = true
			v(fmt.Sprintf("%s was %s %s, without the fault %s", c.canonical, done, timesText(got), timesText(want)))
		}
	}
	switch {
	case c.Type == "ADDED":
		check("created", l.created[c.canonical], l.reference.created[c.canonical])
	case c.isDeletion():
		check("deleted", l.deleted[c.canonical], l.reference.deleted[c.canonical])
	}
}

func timesText(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// boundedRequests demands that the operator stops working.
type boundedRequests struct{}

// The number of requests that a run may need.
const (
	requestFactor = 20
	requestFloor  = 5000
	requestsEach  = 200 // and so many more for each object of users
)

func (l *ledger) requestLimit() int {
	if l.reference == nil {
		return l.pace.Requests + requestsEach*max(0, l.users-1)
	}
	return requestFactor*l.reference.Requests + requestFloor
}

// repetitions is how many more times than in 20 runs without faults the operator may create an object
// of one name. A loop that waits for something each time needs fewer requests than are allowed.
const repetitions = 100

func (boundedRequests) OnChange(l *ledger, c *change, v violate) {
	if l.reference == nil || l.addsWork || l.aborted || c.Type != "ADDED" || !c.byOperator || c.orphan {
		return
	}
	if limit := requestFactor*l.reference.created[c.canonical] + repetitions; l.created[c.canonical] > limit && !l.endless {
		l.endless = true
		v(fmt.Sprintf("%s was created more than %d times: the operator does not stop working", c.canonical, limit))
	}
}

func (boundedRequests) OnRequest(l *ledger, made int, v violate) {
	if limit := l.requestLimit(); made > limit && !l.aborted && !l.endless {
		v(fmt.Sprintf("more than %d requests: the operator does not stop working", limit))
	}
}
