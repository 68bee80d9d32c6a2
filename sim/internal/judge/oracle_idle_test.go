// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// later makes it later than it is.
func (tr trial) later(d time.Duration) {
	tr.ledger.proof = tr.ledger.proof.Add(-d)
	tr.ledger.caused = tr.ledger.caused.Add(-d)
}

var (
	withoutNoNoopWrites   = map[oracle.Name]string{oracle.NoNoopWrites: "it is tested alone"}
	withoutSilentWhenIdle = map[oracle.Name]string{oracle.SilentWhenIdle: "it is tested alone"}
)

func silentWhenIdleChecks(*testing.T) map[string]check {
	event := func(body string) func(trial) {
		return func(tr trial) {
			tr.Prove("a restart")
			tr.Event(&apiserver.Request{Verb: "create", Resource: configMaps, Name: "x", Body: []byte(body)})
		}
	}
	return map[string]check{
		"right: a write before": {show: func(tr trial) { tr.changes("update") }},
		"right: a write afterwards": {show: func(tr trial) {
			tr.Prove("a resync")
			tr.Prove("")
			tr.changes("update")
		}},
		"right: a write that changes nothing, which is another oracle's business": {
			options: Options{Without: withoutNoNoopWrites}, show: func(tr trial) {
				tr.Prove("a resync")
				tr.write("update", 200)
				tr.write("create", 409)
			},
		},
		"right: long after the resync, by the clock": {show: func(tr trial) {
			tr.Prove("a resync")
			tr.later(time.Minute)
			tr.changes("create")
			tr.BeforeCall(external.Call{System: "buckets", Verb: "create", What: "b"})
		}},
		"right: what it does by the clock, at the same time": {show: func(tr trial) {
			tr.later(time.Hour)
			tr.changes("patch")
			tr.BeforeCall(external.Call{System: "buckets", Verb: "sweep"})
			tr.Prove("a resync")
			tr.changes("patch")
			tr.BeforeCall(external.Call{System: "buckets", Verb: "sweep"})
		}},
		"right: what it does by the clock without the fault": {
			options: Options{Reference: &Reference{periodic: map[string]bool{"create configmaps ": true}}}, show: func(tr trial) {
				tr.Prove("a restart")
				tr.changes("create")
			},
		},
		"right: a new leader says so": {show: event("LeaderElection")},
		"right: others write": {show: func(tr trial) {
			tr.Prove("a resync")
			tr.updated("user", object(nil), object(nil))
		}},
		"wrong: writes, of which the first is enough": {show: func(tr trial) {
			tr.Prove("a resync")
			tr.changes("update")
			tr.changes("delete")
		}},
		"wrong: what it did before, when others had changed something": {show: func(tr trial) {
			tr.updated("user", object(nil), object(nil))
			tr.changes("update")
			tr.Prove("a resync")
			tr.changes("update")
		}},
		"wrong: what it did before a fault": {options: Options{Plan: withFault(fault.CrashAfterWrite), Reference: &Reference{}}, show: func(tr trial) {
			tr.later(time.Hour)
			tr.changes("update")
			tr.Prove("a resync")
			tr.changes("update")
		}},
		"wrong: an effect outside": {show: func(tr trial) {
			tr.Prove("a restart")
			tr.BeforeCall(external.Call{System: "buckets", Verb: "create", What: "b"})
		}},
		"wrong: a Kubernetes Event":                    {show: event(`{"reason": "Updated", "message": "updated the Service x"}`)},
		"wrong: a Kubernetes Event that can't be read": {show: event("Updated")},
	}
}

func noNoopWritesChecks(*testing.T) map[string]check {
	return map[string]check{
		"right: a write before": {show: func(tr trial) { tr.write("update", 200) }},
		"right: one that changes something, which is another oracle's business": {options: Options{Without: withoutSilentWhenIdle}, show: func(tr trial) {
			tr.Prove("a resync")
			tr.changes("update")
		}},
		"right: long after the resync": {show: func(tr trial) {
			tr.Prove("a resync")
			tr.later(time.Minute)
			tr.write("update", 200)
		}},
		"wrong: an update": {show: func(tr trial) {
			tr.Prove("a resync")
			tr.write("update", 200)
			tr.write("patch", 200)
		}},
		"wrong: what others change at the same time is not its change": {show: func(tr trial) {
			tr.Prove("a resync")
			tr.updated("user", object(nil), object(nil))
			tr.write("update", 200)
		}},
		"wrong: one that the server refuses": {show: func(tr trial) {
			tr.Prove("a restart")
			tr.write("create", 409)
		}},
	}
}

func endsWellChecks(*testing.T) map[string]check {
	refused := func(verb string, code, times int) func(trial) {
		return func(tr trial) {
			for range times {
				tr.write(verb, code)
			}
			tr.Idle(Idle{Checkpoint: 1})
		}
	}
	failing := Idle{Checkpoint: 2, Failing: []Failing{{Controller: "c", Object: "default/x", Err: "no"}}}
	return map[string]check{
		"right: refused twice": {show: refused("update", 409, 2)},
		"right: accepted in the end": {show: func(tr trial) {
			for range 5 {
				tr.write("update", 409)
			}
			refused("update", 200, 1)(tr)
		}},
		"right: given up, in an earlier stage": {show: func(tr trial) {
			tr.write("create", 422)
			tr.write("create", 422)
			tr.Idle(Idle{Checkpoint: 1})
			tr.Idle(Idle{Checkpoint: 2})
		}},
		"right: create unless it is there":            {show: refused("create", 409, 9)},
		"right: update unless it has changed":         {show: refused("update", 409, 9)},
		"right: delete unless it is gone":             {show: refused("delete", 404, 9)},
		"right: with a fault":                         {options: Options{Plan: withFault(fault.CrashAfterWrite)}, show: refused("create", 422, 9)},
		"right: with a fault, a reconcile fails":      {options: Options{Plan: withFault(fault.CrashAfterWrite)}, show: func(tr trial) { tr.Idle(failing) }},
		"right: all reconciles succeed":               {show: func(tr trial) { tr.Idle(Idle{Checkpoint: 2}) }},
		"wrong: refused again and again":              {show: refused("create", 422, 3)},
		"wrong: an update is refused again and again": {show: refused("update", 422, 3)},
		"wrong: the last reconcile fails":             {show: func(tr trial) { tr.Idle(failing) }},
	}
}

func cacheUntouchedChecks(*testing.T) map[string]check {
	return map[string]check{
		"right: nothing was changed":   {show: func(tr trial) { tr.Idle(Idle{Checkpoint: 1}) }},
		"wrong: an object was changed": {show: func(tr trial) { tr.Idle(Idle{Altered: []string{"ConfigMap default/x: data.a"}}) }},
	}
}
