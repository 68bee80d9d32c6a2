// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/actor"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// A Write is one on its way to the API server.
type Write struct {
	Actor   string // which process, in the trace
	Process Process
	Turn    Turn
	Request *apiserver.Request

	n             int
	before        map[string]any // the object before the write, for Fight
	addsFinalizer bool           // to an object that has none, for Vanish
	done          bool           // the server has accepted it
}

// writeEffect is what a kind of fault does at a write. A fault strikes once, before or after it.
type writeEffect struct {
	// actor is who does it, in the trace. Empty stands for the process.
	actor string

	// fits reports whether it can strike: in a pair, and in real time, the write may be another one
	// than in the run whose places the plan was made of. nil: at each write.
	fits func(in *Injector, f fault.Fault, w *Write) bool

	// before strikes before the write. The write does not happen when it returns an answer, or
	// when it is held.
	before func(in *Injector, f fault.Fault, w *Write) *Answer

	// prepare is called just before the write, and does not count as striking.
	prepare func(in *Injector, w *Write)

	// after strikes after the write, if when is nil or returns true. What it returns
	// replaces the answer.
	when  func(w *Write) bool
	after func(in *Injector, f fault.Fault, w *Write) *Answer
}

// held is what an effect returns that has put a request or call back.
var held = &Answer{}

func crashed(process Process) *Answer {
	process.Crash()
	return &Answer{Err: ErrCrashed}
}

func refused(how string, r *apiserver.Request) *Answer {
	return &Answer{Response: RefusalOfWrite(how, r)}
}

// toWrite, toObject and toProcess are the effects of faults that leave the answer as it is: what an
// actor does about the write, or to the object that the fault names, and what happens to the process.
func toWrite(do func(*actor.Actors, *apiserver.Request)) func(*Injector, fault.Fault, *Write) *Answer {
	return func(in *Injector, _ fault.Fault, w *Write) *Answer { do(in.Actors, w.Request); return nil }
}

func toObject(do func(*actor.Actors, string)) func(*Injector, fault.Fault, *Write) *Answer {
	return func(in *Injector, f fault.Fault, _ *Write) *Answer { do(in.Actors, f.Of); return nil }
}

func toProcess(do func(Process, fault.Fault)) func(*Injector, fault.Fault, *Write) *Answer {
	return func(_ *Injector, f fault.Fault, w *Write) *Answer { do(w.Process, f); return nil }
}

func crash(_ *Injector, _ fault.Fault, w *Write) *Answer { return crashed(w.Process) }

// isOfKind reports whether a write is one at which a plan can have the fault.
func isOfKind(in *Injector, f fault.Fault, w *Write) bool {
	place := placeOf(in.Cluster, w.n, w.Request)
	return slices.Contains(place.Faults(), f)
}

// isThere reports whether the object is there that a fault is about.
func isThere(in *Injector, f fault.Fault, _ *Write) bool {
	_, err := in.Cluster.LookUp(f.Of)
	return err == nil
}

// writeEffects has the faults at writes.
var writeEffects = map[fault.Kind]writeEffect{
	fault.CrashBeforeWrite: {before: crash},
	fault.LandLate: {before: func(in *Injector, _ fault.Fault, w *Write) *Answer {
		in.Time.WhenIdle(func() {
			in.Trace.Add("sim", "heal", "the late write arrives")
			in.execute(w.Request, numbered("write", w.n)+" (late)")
		})
		return crashed(w.Process)
	}},
	fault.PanicAtWrite: {before: func(*Injector, fault.Fault, *Write) *Answer { return &Answer{Panics: true} }},
	fault.RefuseWrite: {before: func(in *Injector, f fault.Fault, w *Write) *Answer {
		answer := refused(f.How, w.Request)
		in.Trace.Add(w.Actor, numbered("write", w.n), cluster.DescribeAnswer(cluster.Describe(w.Request), answer.Response))
		return answer
	}},
	fault.PauseBeforeWrite: {before: func(_ *Injector, f fault.Fault, w *Write) *Answer {
		w.Turn.Pause(f.For)
		return held
	}},
	fault.TouchBeforeWrite:       {fits: isOfKind, before: toWrite((*actor.Actors).Touch)},
	fault.OccupyName:             {fits: isOfKind, before: toWrite((*actor.Actors).Occupy)},
	fault.OccupyNameByController: {fits: isOfKind, before: toWrite((*actor.Actors).OccupyByController)},
	fault.LeaveOrphan:            {fits: isOfKind, before: toWrite((*actor.Actors).LeaveOrphan)},
	fault.DeleteBeforeWrite:      {fits: isOfKind, before: toWrite((*actor.Actors).DeleteTarget)},

	fault.MutateWrite:  {before: toWrite((*actor.Actors).MutateWritesOf)},
	fault.StopAtWrite:  {before: toProcess(func(p Process, _ fault.Fault) { p.Stop() })},
	fault.SecondLeader: {before: toProcess(func(p Process, _ fault.Fault) { p.StartSecond() })},
	fault.JumpClock:    {before: toProcess(func(p Process, f fault.Fault) { p.JumpClock(f.For) })},
	fault.Withhold:     {fits: isThere, before: toObject((*actor.Actors).Withhold)},

	fault.CrashAfterWrite: {after: crash},
	fault.RestartInPast: {after: func(in *Injector, f fault.Fault, w *Write) *Answer {
		in.startInPast(f.Of, f.By)
		return crashed(w.Process)
	}},
	fault.LoseWriteAnswer: {after: func(_ *Injector, f fault.Fault, w *Write) *Answer { return lostAnswer(f.How, w.Request) }},
	fault.Recreate:        {fits: isThere, actor: "user", after: toObject((*actor.Actors).Recreate)},
	fault.DeleteAndCreate: {fits: isThere, actor: "user", after: toObject((*actor.Actors).DeleteAndCreate)},
	fault.Vanish: {
		actor:   "user",
		prepare: func(in *Injector, w *Write) { w.addsFinalizer = addsFinalizer(in.Cluster, w.Request) },
		when:    func(w *Write) bool { return w.done && w.addsFinalizer },
		after:   toWrite((*actor.Actors).Vanish),
	},
	fault.WipeStatus:       {fits: isThere, actor: "other", after: toObject((*actor.Actors).WipeStatus)},
	fault.StripAnnotations: {actor: "other", after: toObject((*actor.Actors).StripAnnotations)},
	fault.Fight: {
		actor:   "other",
		prepare: func(in *Injector, w *Write) { w.before = in.Actors.ContentOf(w.Request) },
		when:    func(w *Write) bool { return w.done && w.before != nil },
		after: func(in *Injector, _ fault.Fault, w *Write) *Answer {
			in.Actors.Fight(w.Request, w.before)
			return nil
		},
	},
}

// Write counts a write and lets the faults strike that the plan has for it. It returns the answer,
// or nil when the write was put back.
func (in *Injector) Write(w *Write) *Answer {
	in.writes++
	w.n = in.writes
	in.Catalog.write(in.Cluster, w.n, w.Request)
	faults := slices.DeleteFunc(in.due(fault.AtWrite, w.n, ""), func(f *planned) bool {
		fits := writeEffects[f.Kind].fits
		return fits != nil && !fits(in, f.Fault, w)
	})
	for _, f := range faults {
		effect := writeEffects[f.Kind]
		if effect.before == nil {
			continue
		}
		in.fire(f, cmp.Or(effect.actor, w.Actor))
		switch answer := effect.before(in, f.Fault, w); answer {
		case nil:
		case held:
			in.writes-- // it is the same write when it comes again
			return nil
		default:
			return answer
		}
	}
	for _, f := range faults {
		if prepare := writeEffects[f.Kind].prepare; prepare != nil {
			prepare(in, w)
		}
	}
	answer := &Answer{Response: in.execute(w.Request, numbered("write", w.n))}
	w.done = answer.Response.Code < 300
	for _, f := range faults {
		effect := writeEffects[f.Kind]
		if f.fired || effect.after == nil || effect.when != nil && !effect.when(w) {
			continue
		}
		in.fire(f, cmp.Or(effect.actor, w.Actor))
		if other := effect.after(in, f.Fault, w); other != nil {
			answer = other
		}
	}
	in.Actors.ContinueFights(w.Request)
	return answer
}

// execute lets the server do a write. One that changes nothing is no work: an operator that polls
// with it is idle, and the proof of that shows the write. Neither is one with which the judge says
// that an operator may be idle.
func (in *Injector) execute(r *apiserver.Request, what string) *apiserver.Response {
	in.Judge.BeforeWrite(r)
	before := in.Cluster.Changes()
	response := in.Cluster.Execute(r, what)
	changed := in.Cluster.Changes() != before
	if idle := in.Judge.AfterWrite(r, response); !idle && (response.Code >= 300 || changed) {
		in.Active()
	}
	if response.Code < 300 {
		in.Actors.Admit(r)
	}
	return response
}
