// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import "testing"

// idleWith has the operator become idle, when a ConfigMap default/x is there, after it has read what
// nothing watches.
func idleWith(all ...Unwatched) func(trial) {
	return func(tr trial) {
		tr.created("user", object(nil))
		tr.Idle(Idle{Checkpoint: 1, Unwatched: all})
	}
}

func noLostWakeUpChecks(*testing.T) map[string]check {
	read := Unwatched{Controller: "c", Object: "default/x", Kind: "secrets", Read: "default/s", Site: "a.go:12"}
	of := func(change func(u *Unwatched)) Unwatched {
		u := read
		change(&u)
		return u
	}
	return map[string]check{
		"right: nothing was read": {show: idleWith()},
		"right: it is declared":   {options: Options{Rules: Rules{Unwatched: map[string]string{"secrets": "read once"}}}, show: idleWith(read)},
		"right: the object is gone": {show: func(tr trial) {
			tr.created("user", object(nil))
			tr.deleted("user", object(nil))
			tr.Idle(Idle{Checkpoint: 1, Unwatched: []Unwatched{read}})
		}},
		"wrong: it was read":                     {show: idleWith(read)},
		"wrong: another kind is declared":        {options: Options{Rules: Rules{Unwatched: map[string]string{"nodes": "read once"}}}, show: idleWith(read)},
		"wrong: it was read for several objects": {show: idleWith(read, of(func(u *Unwatched) { u.Read = "default/t" }))},
		"wrong: a step has read it":              {show: idleWith(of(func(u *Unwatched) { u.Step, u.Site = "A", "" }))},
	}
}
