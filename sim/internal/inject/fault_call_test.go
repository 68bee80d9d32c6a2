// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

const (
	unavailable = "the service is unavailable"
	noError     = "<nil>"
)

// A callCase is what a fault at a call does: what the process gets as an answer, what happens to
// the process and the schedule, and how often the call has had its effect, then and later.
type callCase struct {
	plan        string
	answer      string
	by          string // who strikes, without: operator
	did         string
	then, later int
	next        string // what the next process gets before anything is healed; without: no error
}

var callCases = []callCase{
	{plan: "no fault", answer: noError, then: 1, later: 1},
	{plan: "crash before call 1", answer: crashedAnswer, did: "crash"},
	{plan: "crash inside call 1", answer: crashedAnswer, did: "crash, timer 5s", later: 1},
	{plan: "crash after call 1", answer: crashedAnswer, did: "crash", then: 1, later: 1},
	{plan: "lose the answer of call 1", answer: "the connection was lost before the answer came", then: 1, later: 1},
	{plan: "fail call 1", answer: unavailable},
	{plan: "throttle call 1", answer: "too many requests"},
	{plan: "panic at call 1", answer: "panic"},
	{plan: "slow call 1 by 1m30s", answer: "none yet", did: "hold for 1m30s, timer 1m31s"},
	{plan: "hang call 1", answer: "none yet", did: "hold for 1h0m0s, timer 1h0m1s"},
	{plan: "drift after call 1", answer: noError, by: "other", did: "drift", then: 1, later: 1},
	{plan: "outage from call 1 for 10m0s", answer: unavailable, did: "timer 10m0s, slow down by 10m0s", next: unavailable},
	{
		plan: "outage from call 1 until idle", answer: unavailable, next: unavailable,
		did: "stuck: buckets does not answer, blocked [{buckets [1 1]}], slow down by 1m0s",
	},
}

// make makes a call to a system and returns its answer.
func (s *stage) make(actor, system string, do func() error) string {
	answer := s.Call(&Call{
		Actor: actor, Process: s, Turn: s, Call: external.Call{System: system, Verb: "create", Mutates: true, Owner: "1"}, Do: do,
	})
	if answer != nil && !answer.Panics && answer.Err == nil {
		return noError
	}
	return show(answer)
}

func TestFaultsAtCalls(t *testing.T) {
	nothing := func() error { return nil }
	for _, c := range callCases {
		t.Run(c.plan, func(t *testing.T) {
			s := newStage(t, c.plan)
			effects := 0
			equal(t, "answer", c.answer, s.make("operator", "buckets", func() error { effects++; return nil }))
			equal(t, "effects", c.then, effects)
			equal(t, "the next answer", cmp.Or(c.next, noError), s.make("operator-2", "buckets", nothing))
			equal(t, "the answer of another system", noError, s.make("operator-2", "queues", nothing))
			s.settle()
			equal(t, "effects later", c.later, effects)
			equal(t, "did", c.did, strings.Join(s.did, ", "))
			equal(t, "an answer when idle", noError, s.make("operator-2", "buckets", nothing))
			if c.plan != "no fault" {
				equal(t, "fired", []bool{true}, s.Fired())
				equal(t, "struck", cmp.Or(c.by, "operator"), s.struck())
			}
		})
	}
}

// The error of a call reaches the process. A late effect that fails is in the trace only, and the
// answer of a call is lost whatever it was.
func TestCallsThatFail(t *testing.T) {
	failing := func() error { return errors.New("no such bucket") }
	for plan, want := range map[string]string{
		"no fault": "no such bucket", "drift after call 1": "no such bucket", "lose the answer of call 1": external.ErrLost.Error(),
		"crash inside call 1": crashedAnswer,
	} {
		s := newStage(t, plan)
		equal(t, plan, want, s.make("operator", "buckets", failing))
		s.settle()
		late := strings.Contains(s.Trace.String(), "the late call had no effect: no such bucket")
		equal(t, plan+": a late effect", plan == "crash inside call 1", late)
	}
}

// A call that is held is the same call when it comes again. One that an outage stops counts, but no
// other fault strikes it.
func TestHowCallsCount(t *testing.T) {
	tests := map[string][]string{
		"slow call 1 by 1m30s; fail call 2":             {"none yet", noError, unavailable},
		"hang call 2; throttle call 2":                  {noError, "none yet", "too many requests"},
		"outage from call 1 for 10m0s; throttle call 2": {unavailable, unavailable, unavailable},
		"fail call 1; throttle call 3":                  {unavailable, noError, "too many requests"},
		"refuse write 1: 409; refuse read 1: 500":       {noError, noError, noError},
	}
	for plan, want := range tests {
		s := newStage(t, plan)
		var answers []string
		for range want {
			answers = append(answers, s.make("operator", "buckets", func() error { return nil }))
		}
		equal(t, plan, want, answers)
	}
}

// An outage knows from its first call for which objects it has stopped calls, which decides who has
// to say why when something else comes back.
func TestWhomOutagesStop(t *testing.T) {
	for _, plan := range []string{"outage from call 1 for 10m0s", "outage from call 1 until idle"} {
		s := newStage(t, plan)
		s.make("operator", "buckets", func() error { return nil })
		equal(t, plan, []external.Blocked{{System: "buckets", Owners: []types.UID{"1"}}}, s.Actors.Blocked())
		s.settle()
		equal(t, plan+", when idle", 0, len(s.Actors.Blocked()))
	}
}
