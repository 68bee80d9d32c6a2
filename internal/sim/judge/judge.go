// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package judge decides whether what an operator does in a run is right. It only watches: nothing
// in it changes the run.
//
// Each oracle is one type. It implements those of the interfaces onWrite, onChange, onCall and so
// on whose moments it has something to say about, and is registered in one list, in the function
// oracles. What several oracles need to know stands in the ledger.
package judge

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/minted"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// violate reports that the oracle that is called does not hold, and in what the world differs, if it
// is about that.
type violate func(text string, differ ...differences)

// differences are those of one checkpoint.
type differences struct {
	checkpoint int // from 1
	list       []oracle.Difference
}

// The moments at which oracles are called. Except for onEvent, the driver calls them, one at a
// time.
type (
	onWrite interface { // before a write of the operator is done
		OnWrite(l *ledger, r *apiserver.Request, v violate)
	}
	afterWrite interface { // after it was done
		AfterWrite(l *ledger, r *apiserver.Request, answer *apiserver.Response, v violate)
	}
	onChange interface { // after a change of the cluster, which the ledger knows already
		OnChange(l *ledger, c *change, v violate)
	}
	onCall interface { // before a call of the operator that has an effect outside
		OnCall(l *ledger, c external.Call, v violate)
	}
	afterCall interface { // after it has had the effect
		AfterCall(l *ledger, c external.Call, v violate)
	}
	onEvent interface { // before the operator writes a Kubernetes Event, in any goroutine
		OnEvent(l *ledger, r *apiserver.Request, v violate)
	}
	onRequest interface { // before each request and call that reaches the outside
		OnRequest(l *ledger, made int, v violate)
	}
	onStuck interface { // before something is healed without which objects can't continue
		OnStuck(l *ledger, s stuck, v violate)
	}
	whenIdle interface { // at each checkpoint, and after the proof that the operator is idle
		WhenIdle(l *ledger, i Idle, v violate)
	}
	atEnd interface { // when the run is over
		AtEnd(l *ledger, e End, v violate)
	}
)

// registered is one oracle.
type registered struct {
	name   oracle.Name
	oracle any
}

// oracles returns all oracles that watch runs, with empty memories. BecomesIdle, Mended,
// NoGoroutineLeft, OperatorRuns and ScriptRuns are not among them: only who drives the run can see
// whether they hold, and calls [Judge.Report].
func oracles() []registered {
	return []registered{
		{oracle.SilentWhenIdle, &silentWhenIdle{}},
		{oracle.NoNoopWrites, &noNoopWrites{}},
		{oracle.EndsWell, &endsWell{refused: map[string]*refusal{}}},
		{oracle.ForeignUntouched, &foreignUntouched{}},
		{oracle.FinalizerFirst, finalizerFirst{}},
		{oracle.OneExternal, oneExternal{}},
		{oracle.NoLeak, noLeak{}},
		{oracle.NoOrphans, newNoOrphans()},
		{oracle.DeletionEnds, newDeletionEnds()},
		{oracle.NoLateFinalizer, noLateFinalizer{tries: map[types.UID]int{}}},
		{oracle.SameWork, sameWork{said: map[string]bool{}}},
		{oracle.ObservedGeneration, observedGeneration{former: map[string]int64{}, inherited: map[observation]bool{}}},
		{oracle.ConditionsStay, conditionsStay{others: map[types.UID]map[string]bool{}}},
		{oracle.TransitionTime, transitionTime{}},
		{oracle.ReadyWhenDone, readyWhenDone{claims: map[types.UID]*claim{}, users: map[types.UID]time.Time{}}},
		{oracle.CacheUntouched, cacheUntouched{}},
		{oracle.NoLostWakeUp, noLostWakeUp{}},
		{oracle.NoSecret, noSecret{}},
		{oracle.BoundedRequests, boundedRequests{}},
		{oracle.SaysWhy, saysWhy{}},
		{oracle.NoPanic, noPanic{}},
		{oracle.SameEnd, sameEnd{}},
		{oracle.SameHistory, sameHistory{}},
	}
}

// Options are what a judge knows from the beginning.
type Options struct {
	Plan      fault.Plan
	Reference *Reference             // nil in the run that becomes it
	Without   map[oracle.Name]string // oracles that are switched off
	Systems   map[string]external.System
	Rules     Rules
	Pace      Pace   // the zero value is that of virtual time
	Declare   string // how users say what is meant; empty: with the options of package sim

	// Now is the time that the operator has had for its work; nil is [time.Now].
	Now func() time.Time

	// Noticed is called at each violation, and returns the place of the next entry in the trace.
	Noticed func(name oracle.Name, text string) (entry int)
}

// Rules are what a workload declares of its operator.
type Rules struct {
	ComesAndGoes map[string]bool   // types of conditions that are there for a time only
	Keeps        map[string]string // kinds ("persistentvolumeclaims") that outlive their owners, with the reasons
	Network      string            // why the operator may use the real network; empty: it may not
	Unwatched    map[string]string // kinds ("nodes") that are read on purpose although nothing watches them, with the reasons
}

// A Judge watches one run.
type Judge struct {
	options Options
	oracles []registered
	ledger  *ledger

	mu         sync.Mutex // guards what follows
	violations []oracle.Violation
	requests   int
	version    uint64 // the last resource version

	changed, renewed int // changes since a write began, and how many of them only renew times
}

// New returns the judge of one run.
func New(o Options) *Judge {
	return &Judge{options: o, oracles: oracles(), ledger: newLedger(o)}
}

// Report records that an oracle does not hold. Each text of an oracle is recorded once. Any
// goroutine may call it.
func (j *Judge) Report(name oracle.Name, text string) {
	j.report(oracle.Violation{Oracle: name, Text: text})
}

func (j *Judge) report(found oracle.Violation) {
	if _, off := j.options.Without[found.Oracle]; off {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, v := range j.violations {
		// What a resync or a restart causes is one mistake, however much it is.
		if v.Oracle == found.Oracle && (v.Text == found.Text || v.Oracle == oracle.SilentWhenIdle || v.Oracle == oracle.NoNoopWrites) {
			return
		}
	}
	line, _, _ := strings.Cut(found.Text, "\n")
	found.Entry = j.options.Noticed(found.Oracle, line)
	j.violations = append(j.violations, found)
}

// Violations returns what was reported.
func (j *Judge) Violations() []oracle.Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.violations)
}

// each calls every oracle that has something to say about a moment.
func each[T any](j *Judge, call func(o T, v violate)) {
	for _, r := range j.oracles {
		if o, ok := r.oracle.(T); ok {
			call(o, func(text string, differ ...differences) {
				found := oracle.Violation{Oracle: r.name, Text: text}
				for _, d := range differ {
					found.Checkpoint, found.Differences = d.checkpoint, d.list
				}
				j.report(found)
			})
		}
	}
}

// BeforeWrite looks at a write of the operator before it is done.
func (j *Judge) BeforeWrite(r *apiserver.Request) {
	j.changed, j.renewed = 0, 0
	each(j, func(o onWrite, v violate) { o.OnWrite(j.ledger, r, v) })
}

// AfterWrite looks at the answer to it. It reports whether an operator may be idle that sends the
// write: the server refuses it again, after a pause and with nothing changed by the operator, so
// that it is no more than a retry; or it only renews times of a status by the clock.
func (j *Judge) AfterWrite(r *apiserver.Request, response *apiserver.Response) (idle bool) {
	retry := j.ledger.retries.answered(r, response)
	each(j, func(o afterWrite, v violate) { o.AfterWrite(j.ledger, r, response, v) })
	return retry || j.changed > 0 && j.changed == j.renewed
}

// Changed looks at a change that the server has committed.
func (j *Judge) Changed(committed apiserver.Change) {
	j.version = max(j.version, committed.ResourceVersion)
	c := j.ledger.record(committed)
	if j.changed++; c.beat {
		j.renewed++
	}
	each(j, func(o onChange, v violate) { o.OnChange(j.ledger, c, v) })
}

// BeforeCall looks at a call of the operator that has an effect, before it.
func (j *Judge) BeforeCall(c external.Call) {
	each(j, func(o onCall, v violate) { o.OnCall(j.ledger, c, v) })
}

// AfterCall looks at what the call has made.
func (j *Judge) AfterCall(c external.Call) {
	each(j, func(o afterCall, v violate) { o.AfterCall(j.ledger, c, v) })
}

// Event looks at a Kubernetes Event that the operator is about to write. Any goroutine may call it.
func (j *Judge) Event(r *apiserver.Request) {
	j.mu.Lock()
	j.requests++
	j.mu.Unlock()
	each(j, func(o onEvent, v violate) { o.OnEvent(j.ledger, r, v) })
}

// Request counts a request or call, and reports whether the operator may make it: it may not when
// it has made so many that it would never stop, or has created so many objects: what more it makes
// shows nothing new, and takes a hundred times as long as the rest of the run. Requests of slow
// retries do not count.
func (j *Judge) Request() bool {
	j.mu.Lock()
	j.requests++
	j.ledger.retries.made = j.requests
	made := j.requests - j.ledger.retries.excused
	j.mu.Unlock()
	each(j, func(o onRequest, v violate) { o.OnRequest(j.ledger, made, v) })
	return made <= j.ledger.requestLimit() && !j.ledger.endless
}

// Stuck looks whether objects say why they can't continue, for a cause that is about to end.
func (j *Judge) Stuck(cause string, blocked []external.Blocked) {
	each(j, func(o onStuck, v violate) { o.OnStuck(j.ledger, stuck{cause, blocked}, v) })
}

// Explains reports whether an object has a condition that says why it can't continue, or can't be
// expected to have one: it is gone, or has no conditions without a fault either.
func (j *Judge) Explains(uid types.UID) bool {
	obj, live := j.ledger.live[uid]
	return !live || j.ledger.reference == nil || !j.ledger.reference.conditions[j.ledger.uids[uid]] || hasExplanation(obj.Object)
}

// Disturbed records that others did something to an object with which its finalizer can't hold what
// it promises.
func (j *Judge) Disturbed(uid types.UID) { j.ledger.disturbed[uid] = true }

// StatusWiped records that others removed the status of an object.
func (j *Judge) StatusWiped(uid types.UID) { j.ledger.wiped[uid] = true }

// Made reports whether the operator creates an object, by its name: without the fault, if there is a
// run without it, because a fault may take its place.
func (j *Judge) Made(uid types.UID) bool {
	created := j.ledger.created
	if j.ledger.reference != nil {
		created = j.ledger.reference.created
	}
	return created[j.ledger.uids[uid]] > 0
}

// IsVersion reports whether a text is the resource version that something had.
func (j *Judge) IsVersion(text string) bool {
	version, err := strconv.ParseUint(text, 10, 64)
	return err == nil && version > 0 && version <= j.version
}

// Prepared records that the objects are there that the workload needs from the beginning.
func (j *Judge) Prepared() { j.ledger.prepared = true }

// Prove records what is done to the idle operator, which must not cause anything. Empty ends it.
func (j *Judge) Prove(what string) { j.ledger.setProving(what) }

// Abort records that the run is ended early, so that its end says nothing.
func (j *Judge) Abort() { j.ledger.aborted = true }

// Names replaces what the world has minted by what it was minted for: UIDs, generated names, ids of
// external resources.
func (j *Judge) Names() *strings.Replacer { return j.ledger.names() }

// Idle is what there is when the operator is idle.
type Idle struct {
	Checkpoint int // which one of the script; 0 after the proof that the operator is idle
	Failing    []Failing
	Altered    []string // objects of caches that were changed in place, and how
	Unwatched  []Unwatched
}

// Failing is an object whose last reconcile has returned an error.
type Failing struct {
	Controller string
	Object     string // "default/x"
	Err        string
}

// Idle looks at the idle operator.
func (j *Judge) Idle(i Idle) {
	each(j, func(o whenIdle, v violate) { o.WhenIdle(j.ledger, i, v) })
	j.ledger.stage++
	if i.Checkpoint > 0 {
		j.ledger.times = append(j.ledger.times, time.Since(j.ledger.began))
	}
}

// End is what there is when the run is over.
type End struct {
	Checkpoints []snapshot.Snapshot
	Logs        []string
}

// End looks at the end of the run.
func (j *Judge) End(e End) {
	each(j, func(o atEnd, v violate) { o.AtEnd(j.ledger, e, v) })
}

// Reference returns what other runs are judged by, after a run without faults. Requests are those
// without Kubernetes Events.
func (j *Judge) Reference(checkpoints []snapshot.Snapshot, requests int) *Reference {
	l := j.ledger
	r := &Reference{
		Checkpoints: checkpoints, Mask: map[string]bool{}, Requests: requests,
		created: l.created, deleted: l.deleted, externals: map[string]int{}, conditions: map[string]bool{}, periodic: l.periodic, times: l.times, said: l.said, slots: l.slots,
		reconciled: l.reconciled.kinds,
	}
	for _, name := range slices.Sorted(maps.Keys(l.systems)) {
		for uid, canonical := range l.uids {
			key := name + " " + canonical
			r.externals[key] = max(r.externals[key], l.systems[name].Created(uid))
		}
	}
	for _, checkpoint := range checkpoints {
		for thing, fields := range checkpoint {
			for path := range fields {
				if strings.HasPrefix(path, ".status.conditions[") {
					r.conditions[thing] = true
				}
			}
		}
	}
	return r
}

// A Reference is what a run without faults has shown, by which other runs are judged.
type Reference struct {
	Checkpoints []snapshot.Snapshot
	Mask        map[string]bool // fields that differ between runs without faults
	Requests    int

	created    map[string]int
	deleted    map[string]int
	externals  map[string]int  // creations, by system and owner
	conditions map[string]bool // objects that have conditions at one of the checkpoints
	times      []time.Duration // of the checkpoints
	periodic   map[string]bool // what the operator does without a cause but time
	said       map[string]bool // each condition that was set, with the status that it had
	slots      map[string]*slots
	reconciled map[string]bool // kinds that the operator reconciles
	minted     minted.Names    // what differs between runs without faults
}

// Allow lets runs do what another run without faults has done, from which r has learned.
func (r *Reference) Allow(other *Reference) {
	other.Mint(r.minted)
	for canonical, times := range other.created {
		r.created[canonical] = max(r.created[canonical], times)
	}
	for canonical, times := range other.deleted {
		r.deleted[canonical] = max(r.deleted[canonical], times)
	}
	maps.Copy(r.periodic, other.periodic)
	maps.Copy(r.said, other.said)
	maps.Copy(r.reconciled, other.reconciled)
	r.Requests = max(r.Requests, other.Requests)
}

// Learn masks the fields that differ between this run and another one without faults. It does not
// mask a condition that reports a failure in the other run only: an operator that becomes idle with
// one, although nothing has failed, is wrong in that order.
func (r *Reference) Learn(other []snapshot.Snapshot) {
	r.learn(other, func(got snapshot.Snapshot, d oracle.Difference) bool { return d.Path != "" && !isFailure(got, d) })
}

// LearnChance masks all that differs between this run and another one without faults, where time is
// real, so that two runs are never quite the same.
func (r *Reference) LearnChance(other []snapshot.Snapshot) {
	r.learn(other, func(snapshot.Snapshot, oracle.Difference) bool { return true })
}

func (r *Reference) learn(other []snapshot.Snapshot, masks func(got snapshot.Snapshot, d oracle.Difference) bool) {
	other = r.learnNames(other)
	for i, want := range r.Checkpoints {
		if i >= len(other) {
			return
		}
		for _, d := range want.Diff(other[i], r.Mask) {
			if masks(other[i], d) {
				r.Mask[snapshot.MaskKey(d)] = true
			}
		}
	}
}
