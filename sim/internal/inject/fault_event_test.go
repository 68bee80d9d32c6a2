// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
)

// An eventCase is what a fault at a watch event does with the event and with the watches of its
// kind: the process gets the event now, later, or after it has listed again.
type eventCase struct {
	plan  string
	taken bool // else the event is delivered
	did   string
	text  string // in the trace, beside the fault
}

var eventCases = []eventCase{
	{plan: "no fault"},
	{plan: "delay the watch of secrets by 3 from event 1", taken: true, did: "delay secrets by 3 for 30s, put back"},
	{plan: "miss event 1 of secrets", taken: true, did: "timer 1m0s, expire secrets", text: "missed: ADDED secrets default/s"},
	{plan: "duplicate event 1 of secrets", did: "push"},
	{plan: "delay event 1 of secrets", taken: true, did: "let others overtake for 3s, timer 3s"},
	{plan: "close the watch of secrets after event 1", taken: true, did: "push, close secrets"},
	{plan: "expire the watch of secrets after event 1", taken: true, did: "push, expire secrets"},
}

// event brings an event of a kind, and reports whether a fault has taken it over.
func (s *stage) event(kind string) (taken bool) {
	return s.Event(&Event{Actor: "operator", Kind: kind, Text: "ADDED " + kind + " default/s", Stream: s})
}

func TestFaultsAtEvents(t *testing.T) {
	for _, c := range eventCases {
		t.Run(c.plan, func(t *testing.T) {
			s := newStage(t, c.plan)
			equal(t, "an event of another kind taken", false, s.event("configmaps"))
			equal(t, "taken", c.taken, s.event("secrets"))
			equal(t, "the next event taken", false, s.event("secrets"))
			s.settle()
			equal(t, "did", c.did, strings.Join(s.did, ", "))
			if c.plan != "no fault" {
				equal(t, "fired", []bool{true}, s.Fired())
				equal(t, "struck", "operator", s.struck())
			}
			if text := s.Trace.String(); !strings.Contains(text, c.text) {
				t.Errorf("the trace does not have %q:\n%s", c.text, text)
			}
		})
	}
}

// A missed event is missed until its time has passed: the watch expires only then.
func TestAMissedEventIsMissedForAWhile(t *testing.T) {
	s := newStage(t, "miss event 1 of secrets")
	s.event("secrets")
	equal(t, "did", "timer 1m0s", strings.Join(s.did, ", "))
	s.pass()
	equal(t, "did later", "timer 1m0s, expire secrets", strings.Join(s.did, ", "))
}

// An event that was put back is the same event when it comes again.
func TestADelayedEventCountsOnce(t *testing.T) {
	s := newStage(t, "delay the watch of secrets by 1 from event 1; miss event 2 of secrets; duplicate event 2 of configmaps")
	equal(t, "taken", []bool{true, false, true}, []bool{s.event("secrets"), s.event("secrets"), s.event("secrets")})
	equal(t, "fired", []bool{true, true, false}, s.Fired())
}

// Faults at the same event strike together.
func TestFaultsAtTheSameEvent(t *testing.T) {
	s := newStage(t, "duplicate event 1 of secrets; close the watch of secrets after event 1")
	equal(t, "taken", true, s.event("secrets"))
	equal(t, "did", "push, push, close secrets", strings.Join(s.did, ", "))
}
