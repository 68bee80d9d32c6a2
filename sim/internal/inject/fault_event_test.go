// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
)

// What each fault at a watch event does with the event and with the watches of its kind.
func TestFaultsAtEvents(t *testing.T) {
	tests := map[string]struct {
		taken bool // else the event is delivered
		did   string
	}{
		"no fault": {false, ""},
		"delay the watch of secrets by 3 from event 1": {true, "delay secrets by 3 for 30s, put back"},
		"miss event 1 of secrets":                      {true, "timer 1m0s, expire secrets"},
		"duplicate event 1 of secrets":                 {false, "push"},
		"delay event 1 of secrets":                     {true, "let others overtake for 3s, timer 3s"},
		"close the watch of secrets after event 1":     {true, "push, close secrets"},
		"expire the watch of secrets after event 1":    {true, "push, expire secrets"},
		"miss event 1 of configmaps":                   {false, ""},
	}
	for plan, test := range tests {
		t.Run(plan, func(t *testing.T) {
			s := newStage(t, plan)
			equal(t, "taken", test.taken, s.Event(&Event{Actor: "operator", Kind: "secrets", Text: "ADDED secrets default/s", Stream: s}))
			s.settle()
			equal(t, "did", test.did, strings.Join(s.did, ", "))
		})
	}
}

// An event that was put back is the same event when it comes again.
func TestADelayedEventCountsOnce(t *testing.T) {
	s := newStage(t, "delay the watch of secrets by 1 from event 1; miss event 2 of secrets")
	var taken []bool
	for range 3 {
		taken = append(taken, s.Event(&Event{Actor: "operator", Kind: "secrets", Stream: s}))
	}
	equal(t, "taken", []bool{true, false, true}, taken)
}
