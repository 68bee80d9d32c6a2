// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"strings"
)

// A Class says how bad it is that an oracle does not hold. Smaller classes are worse: reports begin
// with them.
type Class int

// The classes, the worst first.
const (
	ClassLost       Class = iota + 1 // something outside is left for ever, or something of a user is gone
	ClassDuplicate                   // something is done twice
	ClassForeign                     // what belongs to others is changed
	ClassStuck                       // the operator or an object makes no progress any more
	ClassLoop                        // the operator never becomes idle
	ClassDifference                  // the cluster ends in another state
	ClassStatus                      // only what the status says is wrong
	ClassCosmetic                    // users hardly notice
)

// String returns the class as a heading has it.
func (c Class) String() string {
	names := []string{"leak or loss", "duplicate", "foreign object", "stuck", "hot loop", "different end", "wrong status", "cosmetic"}
	if c < ClassLost || int(c) > len(names) {
		return "unknown"
	}
	return names[c-1]
}

// An Entry is what a report says about an oracle.
type Entry struct {
	Name    Name
	Class   Class
	Meaning string // what it means for users that the oracle does not hold, in a sentence
	Remedy  string // what to do about it; empty where that depends on the operator

	// StaleRemedy replaces Remedy when a fault of the plan made a cache stale.
	StaleRemedy string
}

// staleRemedy is what helps against decisions that a stale cache has caused.
const staleRemedy = "The operator acted on a stale cache. Read the object live before the effect, " +
	"with mgr.GetAPIReader(), and stop when it has changed or is gone; or give what is created a " +
	"deterministic name or an idempotency token, so that a second creation finds the first. " +
	"With ctrlkit's steps, call Request.EnsureFresh before the effect, or use step.External."

// table has one row per oracle. Within a class, rows come in the order in which reports show them.
var table = []Entry{
	{
		Name: NoLeak, Class: ClassLost, Meaning: "Something outside the cluster stays, and costs money, after its object is gone.",
		Remedy:      "Record what is created before or with the creation, under a name that can be found again, and remove the finalizer only after a read shows that nothing is left.",
		StaleRemedy: staleRemedy,
	},
	{
		Name: NoSecret, Class: ClassLost, Meaning: "A value of a Secret can be read by those who may not read the Secret.",
		Remedy: "Leave values of Secrets out of errors, logs, Kubernetes events and conditions: name the Secret and its key instead.",
	},
	{
		Name: FinalizerFirst, Class: ClassLost, Meaning: "An object that is deleted at this moment leaves an orphan outside the cluster.",
		Remedy:      "Write the finalizer, and wait for the answer, before the first call that creates something outside.",
		StaleRemedy: staleRemedy,
	},
	{
		Name: NoOrphans, Class: ClassLost, Meaning: "Objects that the operator has created stay in the cluster after the object they were for is gone.",
		Remedy: "Set an owner reference, or delete them before the finalizer is removed. If users want to keep them, declare it with sim.Keeps.",
	},
	{
		Name: OneExternal, Class: ClassDuplicate, Meaning: "One object has several external resources, of which the operator knows one.",
		Remedy:      "Look for the resource before creating it, by a deterministic name, a tag or an idempotency token that is derived from the object's UID.",
		StaleRemedy: staleRemedy,
	},
	{
		Name: SameWork, Class: ClassDuplicate, Meaning: "The operator creates or deletes an object again that it had dealt with.",
		Remedy:      "Derive the name of what is created from its cause, so that a second creation answers 409, and treat that answer as a success after a look at the owner.",
		StaleRemedy: staleRemedy,
	},
	{
		Name: ForeignUntouched, Class: ClassForeign, Meaning: "The operator changes or deletes what another client owns.",
		Remedy: "Check with metav1.IsControlledBy that an existing object is the operator's own before changing it, and send its UID and resourceVersion as preconditions of the write.",
	},
	{
		Name: NoPanic, Class: ClassStuck, Meaning: "The operator panics or has a data race, and users lose what it was doing.",
		Remedy: "The stack names the line. Check the error and the presence of optional fields before using an answer.",
	},
	{Name: OperatorRuns, Class: ClassStuck, Meaning: "The operator ends by itself."},
	{
		Name: EndsWell, Class: ClassStuck, Meaning: "Without any fault, the operator ends with an error, or repeats a write that the API server refuses.",
		Remedy: "Look for the refused write in the trace and send what the API server accepts. An object that can't be reconciled needs a condition, not an endless retry.",
	},
	{
		Name: Allowed, Class: ClassStuck, Meaning: "The operator lacks a permission, so that a part of its work never happens.",
		Remedy: "Add the rule that the finding names, or its kubebuilder marker, and run controller-gen.",
	},
	{
		Name: CacheUntouched, Class: ClassStuck, Meaning: "The operator changes an object of its cache in place: other readers see what is not in the cluster.",
		Remedy: "Change a DeepCopy. Predicates, handlers and mapping functions get the object of the cache itself.",
	},
	{
		Name: NoLostWakeUp, Class: ClassStuck, Meaning: "The operator does not notice when what it has read changes, or comes: its object stays as it is until something else reconciles it.",
		Remedy: "Watch the kind, with Owns or Watches, or return a time. If a change need not be noticed, declare it with sim.Unwatched, and for an engine of ctrlkit with Options.Unwatched.",
	},
	{Name: ScriptRuns, Class: ClassStuck, Meaning: "The script of the workload can't be carried out: users can't do what it does."},
	{
		Name: BecomesIdle, Class: ClassLoop, Meaning: "The operator works without an end, although nothing changes any more.",
		Remedy: "Write only what differs: compare with what is there, after defaults, before an update.",
	},
	{
		Name: BoundedRequests, Class: ClassLoop, Meaning: "The operator sends requests without an end.",
		Remedy: "Write only what differs, and return an error or a time instead of requeueing at once.",
	},
	{Name: SameEnd, Class: ClassDifference, Meaning: "After the fault is over, the cluster never becomes what it is without the fault."},
	{
		Name: SilentWhenIdle, Class: ClassDifference, Meaning: "Each resync and each restart of the operator writes something, for every object.",
		Remedy: "Compare with what is there, after defaults and without times, before a write; order lists that come from maps.",
	},
	{
		Name: NoLateFinalizer, Class: ClassDifference, Meaning: "The operator adds a finalizer to an object that is being deleted, which the API server refuses.",
		Remedy: "Look at the deletionTimestamp before adding a finalizer.", StaleRemedy: "The operator acted on a stale cache. Treat the refusal as a hint that the object is being deleted, not as an error.",
	},
	{
		Name: NoGoroutineLeft, Class: ClassDifference, Meaning: "The operator does not end when its context is canceled, so that its successor waits or works beside it.",
		Remedy: "End each goroutine with the context of the manager, and pass the context to what blocks.",
	},
	{
		Name: ReadyWhenDone, Class: ClassStatus, Meaning: "The object reports success while the work for it is still to be done: users and pipelines continue too early.",
		Remedy:      "Write the condition after the children are as they should be, from what was read of them, with the generation that was reconciled.",
		StaleRemedy: "The operator acted on a stale cache. Compare the observed generation of the children, and of the object, before reporting success.",
	},
	{
		Name: SaysWhy, Class: ClassStatus, Meaning: "Users wait for an object, and nothing says why it makes no progress.",
		Remedy: "Write a condition, with the error, before the error is returned.",
	},
	{
		Name: ObservedGeneration, Class: ClassStatus, Meaning: "Clients that wait for observedGeneration take an old status for the present one.",
		Remedy: "Write the generation of the object that the reconcile has read, and let a conflict refuse the write of an older one.",
	},
	{
		Name: ConditionsStay, Class: ClassStatus, Meaning: "Clients that wait for a condition wait for ever.",
		Remedy: "Set a condition to False or Unknown instead of removing it. If it is meant to come and go, declare it with sim.ComesAndGoes.",
	},
	{
		Name: NoNoopWrites, Class: ClassCosmetic, Meaning: "Each resync and each restart of the operator sends a write that changes nothing, for every object: it costs requests.",
		Remedy: "Compare with what is there before an update, or send an apply only when its content has changed.",
	},
	{
		Name: SameHistory, Class: ClassCosmetic, Meaning: "A counter, a time or a past condition in the status depends on what happened in between.",
		Remedy: "Nothing, if it is meant as a history. Otherwise compute it from what is there.",
	},
	{
		Name: TransitionTime, Class: ClassCosmetic, Meaning: "The age of a condition is wrong.",
		Remedy: "Set conditions with meta.SetStatusCondition on the conditions that are there.",
	},
}

// About returns what a report says about an oracle.
func About(name Name) (Entry, bool) {
	i := slices.IndexFunc(table, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{Name: name, Class: ClassDifference}, false
	}
	return table[i], true
}

// Rank orders the oracles of a class: reports begin with smaller ones.
func (n Name) Rank() int {
	if i := slices.IndexFunc(table, func(e Entry) bool { return e.Name == n }); i >= 0 {
		return i
	}
	return len(table)
}

// Class returns how bad the violation is. That is the class of its oracle, unless the differences
// between the two ends show more: a missing object is worse than another field of a status.
func (v Violation) Class() Class {
	entry, _ := About(v.Oracle)
	if len(v.Differences) == 0 {
		return entry.Class
	}
	return v.Worst().Class()
}

// Worst returns the difference that is the worst one.
func (v Violation) Worst() Difference {
	return slices.MinFunc(v.Differences, func(a, b Difference) int { return int(a.Class()) - int(b.Class()) })
}

// Class returns how bad the difference is.
func (d Difference) Class() Class {
	external := strings.HasPrefix(d.Thing, "external ")
	switch {
	case external && d.Path == "":
		return ClassLost
	case d.Path == "" && d.Got == "":
		return ClassStuck
	case d.Path == "":
		return ClassDuplicate
	case strings.HasPrefix(d.Path, ".status"):
		return ClassStatus
	}
	return ClassDifference
}
