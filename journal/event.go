// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"strings"
	"time"
)

// An Event is something that happened: one of the types of this package that implement it. The set
// is sealed: a switch over all of them needs no other case but an empty default.
type Event interface {
	// String describes the event in a few words, the same for the same event.
	String() string
	event()
}

// Triggered says that something has caused a reconcile. It happens when the request enters the
// queue, before the reconcile begins.
type Triggered struct{ Cause Cause }

// Started says that a reconcile has begun.
type Started struct {
	// Causes are those since the reconcile before, merged.
	Causes []Cause
	// Generation and ResourceVersion are those of the object as it was read.
	Generation      int64
	ResourceVersion string
	// Deleting says that the object is being deleted.
	Deleting bool
	// Finalizer is the one of the controller, empty if it has none.
	Finalizer string
}

// A Phase is a part of a step.
type Phase string

// The phases of a step, named like its methods.
const (
	PhaseClaim   Phase = "Claim" // before Do
	PhaseDo      Phase = "Do"
	PhaseCleanup Phase = "Cleanup"
	PhasePost    Phase = "Post"
)

// StepEnded says that a phase of a step has ended.
type StepEnded struct {
	Step     string
	Phase    Phase
	Outcome  Outcome
	Duration time.Duration
}

// StepBegan says that a phase of a step begins.
type StepBegan struct {
	Step  string
	Phase Phase
}

// StepLate says that a phase of a step has been running for long, and still runs.
type StepLate struct {
	Step  string
	Phase Phase
	// After is how long it has been running, and Limit when its context is done.
	After, Limit time.Duration
}

// StepSkipped says that a step did not run: its condition does not hold, or a step before it did
// not pass.
type StepSkipped struct {
	Step string
	// After is the step that ran last, which did not pass or has ended the reconcile; empty if the
	// step has a condition that does not hold.
	After string
}

// ActionBegan says that an action of a workflow begins.
type ActionBegan struct{ Step, Action string }

// ActionEnded says that an action of a workflow has ended.
type ActionEnded struct {
	Step, Action string
	Outcome      Outcome
	Duration     time.Duration
}

// ActionBlocked says that an action of a graph did not run because others did not pass.
type ActionBlocked struct {
	Step, Action string
	By           []string
}

// An Outcome is how a step, an action or a reconcile ended. The zero value is a success.
type Outcome struct {
	// Err is the failure, without waits and exits.
	Err error
	// Class and Remedy of the failure are as package failure has them.
	Class, Remedy string
	// Waits are what it waits for.
	Waits []Wait
	// Stalled is what a person has to change before the operator can continue, as a condition says
	// it; empty if there is no such condition.
	Stalled string
	// RequeueAfter is the requested time until the next reconcile, zero if there is none.
	RequeueAfter time.Duration
}

// A Wait is one thing that is waited for.
type Wait struct {
	For string `json:"for"`
	// Every is how often the step is run again to check; zero if a watch ends the wait.
	Every time.Duration `json:"every,omitempty"`
}

// Read says that an object was read.
type Read struct {
	Step   string
	Object Object
	// Live says that it was read from the API server and not from the cache.
	Live bool
	Err  error
}

// Wrote says that something was written, or with an error that the attempt failed.
type Wrote struct {
	Step string
	// Verb is create, update, patch, apply, delete or deletecollection.
	Verb   string
	Object Object
	// Subresource is "status" or another, empty for the object itself.
	Subresource string
	// Fields are the paths of the fields that were sent, as far as that is known, sorted.
	Fields []string
	// NoOp says that the write was accepted and has changed nothing, as far as that can be known.
	NoOp bool
	Err  error
}

// Called says that something outside the cluster was called.
type Called struct {
	Step     string
	What     string
	Duration time.Duration
	Err      error
}

// Gated says that the reconcile ended before its steps because the object is left alone, and why.
type Gated struct{ Reason, Message string }

// HotLoop says that writes to an object cause one reconcile after the other.
type HotLoop struct {
	// Reconciles are how many there were in the time Within.
	Reconciles int
	Within     time.Duration
	// Fields are the paths that are flapping, Managers the field managers that write them.
	Fields, Managers []string
	// Slowed is how long the next reconcile is delayed.
	Slowed time.Duration
}

// Unwatched says that a reconcile has read a kind of which no watch of the controller reports changes,
// and has asked for no time: when what it has read changes, nothing reconciles the object.
type Unwatched struct {
	Step string // that has read it, empty if that is not known
	// Object is one of those that were read. It has no name for a list, and no namespace for one of
	// all namespaces.
	Object Object
}

// Requeued says when the object is reconciled again, at the latest.
type Requeued struct {
	After time.Duration
	// Why is "backoff", "poll", "time", "throttled" or "hot loop".
	Why string
	// Failures is the number of failures in a row, for a backoff.
	Failures int
}

// A Result says how a reconcile ended.
type Result string

// The results of reconciles.
const (
	ResultDone      Result = "done"      // the object is as its spec wants
	ResultConverged Result = "converged" // no input has changed since it was done
	ResultWaiting   Result = "waiting"   // something is missing that is expected to come
	ResultFailed    Result = "failed"
	ResultStalled   Result = "stalled" // nothing has failed, and a condition says that a person has to act
	ResultPaused    Result = "paused"  // the object is left alone
	ResultGone      Result = "gone"    // the object does not exist
	ResultStale     Result = "stale"   // the cache does not have our last write yet
	ResultDeleted   Result = "deleted" // the cleanup is done
)

// Finished says that a reconcile has ended.
type Finished struct {
	Result   Result
	Outcome  Outcome
	Duration time.Duration
	// Stalled is since when the object has the condition Stalled, also because of a failure; zero if
	// it has not, or if the reconcile has ended before its steps.
	Stalled time.Time
}

func (Triggered) event()     {}
func (Started) event()       {}
func (StepBegan) event()     {}
func (StepEnded) event()     {}
func (StepLate) event()      {}
func (StepSkipped) event()   {}
func (ActionBegan) event()   {}
func (ActionEnded) event()   {}
func (ActionBlocked) event() {}
func (Read) event()          {}
func (Wrote) event()         {}
func (Called) event()        {}
func (Gated) event()         {}
func (HotLoop) event()       {}
func (Unwatched) event()     {}
func (Requeued) event()      {}
func (Finished) event()      {}

func (e Triggered) String() string { return "triggered by " + e.Cause.String() }

func (e Started) String() string {
	text := "started"
	if e.Deleting {
		text = "started cleanup"
	}
	if len(e.Causes) == 0 {
		return text
	}
	return text + ", because of " + joinCauses(e.Causes)
}

func (e StepBegan) String() string { return fmt.Sprintf("%s of %s begins", e.Phase, e.Step) }
func (e StepEnded) String() string { return fmt.Sprintf("%s of %s %s", e.Phase, e.Step, e.Outcome) }

func (e StepLate) String() string {
	what := fmt.Sprintf("%s of %s has been running for %v", e.Phase, e.Step, e.After)
	if e.After < e.Limit {
		return fmt.Sprintf("%s; it is canceled after %v", what, e.Limit)
	}
	return fmt.Sprintf("%s, and ignores that it was canceled after %v", what, e.Limit)
}

func (e StepSkipped) String() string {
	if e.After == "" {
		return e.Step + " is skipped: its condition does not hold"
	}
	return fmt.Sprintf("%s is not reached: %s did not pass", e.Step, e.After)
}

func (e ActionBegan) String() string { return "action " + e.Action + " begins" }
func (e ActionEnded) String() string { return fmt.Sprintf("action %s %s", e.Action, e.Outcome) }
func (e ActionBlocked) String() string {
	return e.Action + " is blocked by " + strings.Join(e.By, ", ")
}

func (e Read) String() string {
	from := "read"
	if e.Live {
		from = "read live"
	}
	return withError(from+" "+e.Object.String(), e.Err)
}

func (e Wrote) String() string {
	text := e.Verb + " " + e.Object.String()
	if e.Subresource != "" {
		text = e.Verb + " " + e.Subresource + " of " + e.Object.String()
	}
	if len(e.Fields) > 0 {
		text += " (" + strings.Join(e.Fields, ", ") + ")"
	}
	if e.NoOp {
		text += ", which changed nothing"
	}
	return withError(text, e.Err)
}

func (e Called) String() string { return withError("called "+e.What, e.Err) }
func (e Gated) String() string  { return "left alone: " + e.Message }

func (e HotLoop) String() string {
	text := fmt.Sprintf("hot loop: %d reconciles in %v", e.Reconciles, e.Within)
	if len(e.Fields) > 0 {
		text += ", flapping fields " + strings.Join(e.Fields, ", ")
	}
	if len(e.Managers) > 0 {
		text += ", written by " + strings.Join(e.Managers, " and ")
	}
	return text
}

func (e Unwatched) String() string {
	what := e.Object.String()
	if e.Object.Name == "" {
		what = "a list of " + what
		if e.Object.Namespace != "" {
			what += " in " + e.Object.Namespace
		}
	}
	return "read " + what + ", which nothing watches"
}

func (e Requeued) String() string { return fmt.Sprintf("requeued within %v (%s)", e.After, e.Why) }
func (e Finished) String() string { return "finished: " + string(e.Result) }

// String describes the outcome: "done", "failed: ...", "stalled: ..." or "waits for ...".
func (o Outcome) String() string {
	switch {
	case o.Err != nil:
		return "failed: " + o.Err.Error()
	case o.Stalled != "":
		return "stalled: " + o.Stalled
	case len(o.Waits) > 0:
		texts := make([]string, len(o.Waits))
		for i, w := range o.Waits {
			texts[i] = w.For
		}
		return "waits for " + strings.Join(texts, "; ")
	case o.RequeueAfter > 0:
		return fmt.Sprintf("done, requeued after %v", o.RequeueAfter)
	default:
		return "done"
	}
}

// Word returns the outcome in one word: "failed", "stalled", "waiting", "requeue" or "done".
func (o Outcome) Word() string {
	switch {
	case o.Err != nil:
		return "failed"
	case o.Stalled != "":
		return "stalled"
	case len(o.Waits) > 0:
		return "waiting"
	case o.RequeueAfter > 0:
		return "requeue"
	default:
		return "done"
	}
}

func withError(text string, err error) string {
	if err == nil {
		return text
	}
	return text + ": " + err.Error()
}
