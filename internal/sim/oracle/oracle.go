// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle has the names of what must hold in every run of a simulation, and what a
// simulation reports where one does not hold.
//
//	sim.Run(t, workload, sim.WithoutOracle(sim.OracleSameWork, "the job is created anew each time"))
package oracle

import (
	"fmt"
	"strconv"
	"strings"
)

// A Name names one thing that must hold in every run. It says what holds, not what is wrong when it
// does not.
type Name string

// The oracles.
const (
	SameEnd            Name = "same-end"            // when idle, the world is as it is without the fault
	SilentWhenIdle     Name = "silent-when-idle"    // a resync and a restart of an idle operator change nothing, in the cluster and outside
	NoNoopWrites       Name = "no-noop-writes"      // a resync and a restart of an idle operator send no write that changes nothing
	BecomesIdle        Name = "becomes-idle"        // the operator becomes idle
	EndsWell           Name = "ends-well"           // without a fault, no write is refused again and again, and no object's last reconcile fails
	OneExternal        Name = "one-external"        // no more external resources are created per object than without the fault
	NoLeak             Name = "no-leak"             // when an object is gone, so are its external resources
	NoOrphans          Name = "no-orphans"          // when an object is gone, so are those that the operator has created for it
	DeletionEnds       Name = "deletion-ends"       // an object that is being deleted goes, or says why it stays
	FinalizerFirst     Name = "finalizer-first"     // an object has a finalizer before something is done outside for it
	NoLateFinalizer    Name = "no-late-finalizer"   // no finalizer is added to an object that is being deleted
	ForeignUntouched   Name = "foreign-untouched"   // objects of other owners are not changed
	SameWork           Name = "same-work"           // no more objects are created and deleted than without the fault
	SameHistory        Name = "same-history"        // counters, times and past conditions in statuses are as without the fault
	ReadyWhenDone      Name = "ready-when-done"     // an object reports success only when the work for it is done
	ObservedGeneration Name = "observed-generation" // status.observedGeneration does not fall
	ConditionsStay     Name = "conditions-stay"     // types of conditions do not vanish
	TransitionTime     Name = "transition-time"     // lastTransitionTime moves with the status, and only then
	CacheUntouched     Name = "cache-untouched"     // objects in the caches of the operator are not changed in place
	NoLostWakeUp       Name = "no-lost-wake-up"     // what a reconcile reads is watched, or it asks for a time
	BoundedRequests    Name = "bounded-requests"    // the number of requests is bounded, and how often an object is created
	SaysWhy            Name = "says-why"            // an object that is stuck has a condition that says why
	NoGoroutineLeft    Name = "no-goroutine-left"   // the operator ends when its context is canceled, with all goroutines
	NoPanic            Name = "no-panic"            // the operator does not panic, and has no data race
	NoSecret           Name = "no-secret"           // no secret of the workload appears in logs, Events and statuses
	OperatorRuns       Name = "operator-runs"       // the operator does not end by itself
	Allowed            Name = "allowed"             // the operator asks the API server only for what its RBAC rules allow
	Mended             Name = "mended"              // no object that was recorded as stuck ends as it was recorded
	SameAsFresh        Name = "same-as-fresh"       // a changed object ends as one that was created like this
	Recovers           Name = "recovers"            // an object that is changed back ends as it was
	MistakeReported    Name = "mistake-reported"    // where a mistake in an object stops the operator, a status or an Event says so
	ScriptRuns         Name = "script-runs"         // the script can be carried out
)

// A Violation is an oracle that did not hold.
type Violation struct {
	Oracle      Name
	Text        string
	Checkpoint  int          // at which the world differs, from 1; 0 if the violation is not about that
	Differences []Difference // of the world at the checkpoint, in SameEnd and SameHistory
	Entry       int          // which entry of the trace comes next when it is noticed
}

// String returns the name of the oracle and what is wrong.
func (v Violation) String() string { return string(v.Oracle) + ": " + v.Text }

// A Difference is one between the world of a run and that of the run without faults.
type Difference struct {
	Thing string `json:"thing"`          // "configmaps default/x"
	Path  string `json:"path,omitempty"` // of a field; "" when the whole thing is missing or should not be there
	Want  string `json:"want,omitempty"`
	Got   string `json:"got,omitempty"`
}

// String returns the difference in a line.
func (d Difference) String() string {
	switch {
	case d.Path == "" && d.Got == "":
		return "- " + d.Thing + " is missing"
	case d.Path == "" && d.Want == "":
		return "+ " + d.Thing + " should not be there"
	}
	return fmt.Sprintf("~ %s %s: got %s, want %s", d.Thing, strings.TrimPrefix(d.Path, "."), orNothing(d.Got), orNothing(d.Want))
}

// Sentence returns what the difference means, as a person says it.
func (d Difference) Sentence() string {
	switch {
	case d.Path == "" && d.Got == "":
		return d.Thing + " is missing"
	case d.Path == "" && d.Want == "":
		return d.Thing + " is there and should not be"
	}
	return fmt.Sprintf("%s of %s is %s and should be %s", strings.TrimPrefix(d.Path, "."), d.Thing, orNothing(d.Got), orNothing(d.Want))
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	if strings.HasPrefix(s, "<secret ") {
		return s // the hash of a value that must not be shown
	}
	return strconv.Quote(s)
}
