// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// A Call is one on its way to an external system.
type Call struct {
	Actor   string // which process, in the trace
	Process Process
	Turn    Turn
	Call    external.Call
	Do      func() error // has the effect

	n int
}

// callEffect is what a kind of fault does at a call. A fault strikes once, before or after it.
type callEffect struct {
	// actor is who does it, in the trace. Empty stands for the process.
	actor string

	// before strikes before the call, which does not happen. It returns the answer.
	before func(in *Injector, f fault.Fault, c *Call) *Answer

	// after strikes after the call. What it returns replaces the answer.
	after func(in *Injector, f fault.Fault, c *Call) *Answer
}

// answerWith is the effect of faults that only give another answer.
func answerWith(a Answer) func(*Injector, fault.Fault, *Call) *Answer {
	return func(*Injector, fault.Fault, *Call) *Answer { return &a }
}

// callEffects has the faults at calls.
var callEffects = map[fault.Kind]callEffect{
	fault.CrashBeforeCall: {before: func(_ *Injector, _ fault.Fault, c *Call) *Answer { return crashed(c.Process) }},
	fault.CrashInsideCall: {before: func(in *Injector, _ fault.Fault, c *Call) *Answer {
		answer := crashed(c.Process)
		in.Time.After(insideTime, func() {
			if err := in.call(c); err != nil {
				in.Trace.Add("sim", "call", "the late call had no effect: "+err.Error())
			}
		})
		return answer
	}},
	fault.FailCall:     {before: answerWith(Answer{Err: external.ErrUnavailable})},
	fault.ThrottleCall: {before: answerWith(Answer{Err: external.ErrThrottled})},
	fault.PanicAtCall:  {before: answerWith(Answer{Panics: true})},
	fault.Outage: {before: func(in *Injector, f fault.Fault, c *Call) *Answer {
		in.Actors.Begin(c.Call.System, f.For)
		in.Actors.Stops(c.Call)
		return &Answer{Err: external.ErrUnavailable}
	}},
	fault.OutageUntilIdle: {before: func(in *Injector, _ fault.Fault, c *Call) *Answer {
		in.Actors.Begin(c.Call.System, 0)
		in.Actors.Stops(c.Call)
		return &Answer{Err: external.ErrUnavailable}
	}},
	fault.SlowCall: {before: func(in *Injector, f fault.Fault, c *Call) *Answer { return in.hold(c, f.For) }},
	fault.HangCall: {before: func(in *Injector, _ fault.Fault, c *Call) *Answer { return in.hold(c, hangTime) }},

	fault.CrashAfterCall: {after: func(_ *Injector, _ fault.Fault, c *Call) *Answer { return crashed(c.Process) }},
	fault.LoseCallAnswer: {after: answerWith(Answer{Err: external.ErrLost})},
	fault.Drift: {actor: "other", after: func(in *Injector, _ fault.Fault, c *Call) *Answer {
		in.Actors.Drift(c.Call)
		return nil
	}},
}

// hold puts a call back. Nothing counts as idle until it has come again.
func (in *Injector) hold(c *Call, d time.Duration) *Answer {
	c.Turn.Hold(time.Now().Add(d))
	in.Time.After(d+time.Second, func() {})
	return held
}

// Call counts a call and lets the faults strike that the plan has for it. It returns the answer, or
// nil when the call was put back.
func (in *Injector) Call(c *Call) *Answer {
	in.calls++
	c.n = in.calls
	in.Catalog.note(fault.Place{Point: fault.AtCall, At: c.n, Site: c.Call.String(), Mutates: c.Call.Mutates})
	if in.Actors.Stops(c.Call) {
		in.Trace.Add(c.Actor, numbered("call", c.n), c.Call.String()+" -> out of order")
		return &Answer{Err: external.ErrUnavailable}
	}
	faults := in.due(fault.AtCall, c.n, "")
	for _, f := range faults {
		effect := callEffects[f.Kind]
		if effect.before == nil {
			continue
		}
		in.fire(f, cmp.Or(effect.actor, c.Actor))
		answer := effect.before(in, f.Fault, c)
		if answer == held {
			in.calls-- // it is the same call when it comes again
			return nil
		}
		return answer
	}
	answer := &Answer{Err: in.call(c)}
	for _, f := range faults {
		effect := callEffects[f.Kind]
		if f.fired || effect.after == nil {
			continue
		}
		in.fire(f, cmp.Or(effect.actor, c.Actor))
		if other := effect.after(in, f.Fault, c); other != nil {
			answer = other
		}
	}
	return answer
}

// call lets a call have its effect.
func (in *Injector) call(c *Call) error {
	if c.Call.Mutates {
		in.Active()
		in.Judge.BeforeCall(c.Call)
	}
	err := c.Do()
	result := "ok"
	if err != nil {
		result = err.Error()
	}
	in.Trace.Add(c.Actor, numbered("call", c.n), c.Call.String()+" -> "+result)
	if c.Call.Mutates && err == nil {
		in.Judge.AfterCall(c.Call)
	}
	return err
}
