// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

// What each fault at a call does: what the process gets as an answer, what happens to the process,
// and how often the call has had its effect, then and later.
func TestFaultsAtCalls(t *testing.T) {
	const unavailable, crashed = "the service is unavailable", "sim: this process has crashed"
	tests := map[string]struct {
		answer      string
		did         string
		then, later int
		next        string // what the next call gets, before anything is healed
	}{
		"no fault":                      {"<nil>", "", 1, 1, "<nil>"},
		"crash before call 1":           {crashed, "crash", 0, 0, "<nil>"},
		"crash inside call 1":           {crashed, "crash, timer 5s", 0, 1, "<nil>"},
		"crash after call 1":            {crashed, "crash", 1, 1, "<nil>"},
		"lose the answer of call 1":     {"the connection was lost before the answer came", "", 1, 1, "<nil>"},
		"fail call 1":                   {unavailable, "", 0, 0, "<nil>"},
		"throttle call 1":               {"too many requests", "", 0, 0, "<nil>"},
		"panic at call 1":               {"panic", "", 0, 0, "<nil>"},
		"slow call 1 by 1m30s":          {"none yet", "hold for 1m30s, timer 1m31s", 0, 0, "<nil>"},
		"hang call 1":                   {"none yet", "hold for 1h0m0s, timer 1h0m1s", 0, 0, "<nil>"},
		"drift after call 1":            {"<nil>", "drift", 1, 1, "<nil>"},
		"outage from call 1 for 10m0s":  {unavailable, "timer 10m0s, slow down by 10m0s", 0, 0, unavailable},
		"outage from call 1 until idle": {unavailable, "stuck: buckets does not answer, 1 blocked, slow down by 1m0s", 0, 0, unavailable},
	}
	for plan, test := range tests {
		t.Run(plan, func(t *testing.T) {
			s := newStage(t, plan)
			effects := 0
			call := func(do func() error) string {
				answer := s.Call(&Call{
					Actor: "operator", Process: s, Turn: s, Call: external.Call{System: "buckets", Verb: "create", Mutates: true, Owner: "1"}, Do: do,
				})
				if answer != nil && !answer.Panics && answer.Err == nil {
					return "<nil>"
				}
				return show(answer)
			}
			equal(t, "answer", test.answer, call(func() error { effects++; return nil }))
			equal(t, "effects", test.then, effects)
			equal(t, "the next answer", test.next, call(func() error { return nil }))
			s.settle()
			equal(t, "effects later", test.later, effects)
			equal(t, "did", test.did, strings.Join(s.did, ", "))
			equal(t, "an answer when idle", "<nil>", call(func() error { return nil }))
			equal(t, "fired", plan != "no fault", len(s.Fired()) == 1 && s.Fired()[0])
		})
	}
}
