// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A Report is what an operator knows about an object. It is sent as JSON, with durations in
// nanoseconds.
type Report struct {
	Object      journal.Object `json:"object"`
	Controllers []Controller   `json:"controllers"`
}

// A Controller is what one controller of the operator knows about the object.
type Controller struct {
	Name string `json:"name"`
	// Finalizer is the one that it adds to objects, empty if it has none.
	Finalizer string `json:"finalizer,omitempty"`
	// Result is how the last reconcile ended, empty if none has.
	Result journal.Result `json:"result,omitempty"`
	// Running is when the reconcile began that is running, zero if none is.
	Running time.Time `json:"running,omitzero"`
	// Steps are from the last reconcile that ran any: a reconcile that ended before its steps says
	// nothing about them. While a reconcile runs, the steps that have not ended in it are as the
	// one before has left them.
	Steps []Step `json:"steps,omitempty"`
	// Next is when it reconciles again without a change, and Why that is; zero if it does not.
	Next     time.Time `json:"next,omitzero"`
	Why      string    `json:"why,omitempty"`
	Failures int       `json:"failures,omitempty"`
	// Failure is what failed outside the steps, such as a write of the status, with its class and
	// remedy.
	Failure string `json:"failure,omitempty"`
	Class   string `json:"class,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	// Gated is why the object is left alone, empty if it is not.
	Gated   string   `json:"gated,omitempty"`
	HotLoop *HotLoop `json:"hotLoop,omitempty"`
	// Unwatched are kinds that the last reconcile which ran steps has read, and that nothing watches:
	// it has asked for no time, so that nothing reconciles the object when they change.
	Unwatched []Unwatched `json:"unwatched,omitempty"`
	// Queued are the causes of a reconcile that has not begun.
	Queued []string `json:"queued,omitempty"`
	Runs   []Run    `json:"runs,omitempty"` // the latest last
}

// over reports whether the controller is done with the object, because it is gone or its cleanup
// is.
func (c *Controller) over() bool {
	return c.Result == journal.ResultGone || c.Result == journal.ResultDeleted
}

// busy reports whether the controller reconciles the object now, or will without a change.
func (c *Controller) busy() bool { return !c.Running.IsZero() || len(c.Queued) > 0 || !c.Next.IsZero() }

// A HotLoop is why an object is slowed down.
type HotLoop struct {
	What string `json:"what"`
	// Managers are the field managers of the other writers; empty if there are none, or they are
	// not known.
	Managers []string `json:"managers,omitempty"`
}

// An Unwatched is a read of a kind that nothing watches.
type Unwatched struct {
	Step string `json:"step,omitempty"` // empty if it is not known
	// Object is one of those that were read. It has no name for a list.
	Object journal.Object `json:"object"`
}

// States of steps and actions.
const (
	StateDone       = "done"
	StateFailed     = "failed"
	StateStalled    = "stalled" // a person has to act
	StateWaiting    = "waiting"
	StateRequeued   = "requeued" // it asks to run again before the steps after it
	StateRunning    = "running"
	StateNotNeeded  = "not needed"
	StateNotReached = "not reached"
	StateBlocked    = "blocked"
	StateReady      = "ready"     // of an object of a set
	StateNotReady   = "not ready" // of an object of a set
)

// A Step is the state of a step, of an action in it, or of an object of the set that it keeps.
type Step struct {
	Name  string        `json:"name"`
	Phase journal.Phase `json:"phase,omitempty"`
	// Object is the object of a set; empty for a step or an action.
	Object journal.Object `json:"object,omitzero"`
	State  string         `json:"state"`
	// Since is when the state began. With OrLonger it may have begun earlier: what was before is
	// not recorded.
	Since    time.Time `json:"since,omitzero"`
	OrLonger bool      `json:"orLonger,omitempty"`
	// Again says that it is running again.
	Again bool `json:"again,omitempty"`
	// Error is what failed; Class and Remedy are as package failure has them. The class of an
	// object of a set is the reason that a condition has for it.
	Error  string         `json:"error,omitempty"`
	Class  string         `json:"class,omitempty"`
	Remedy string         `json:"remedy,omitempty"`
	Waits  []journal.Wait `json:"waits,omitempty"`
	// Late is what is to be said of one that has been running for long, empty if it has not.
	Late string `json:"late,omitempty"`
	// Stalled is what a person has to change.
	Stalled string `json:"stalled,omitempty"`
	// Lacks is why an object of a set is not ready.
	Lacks string `json:"lacks,omitempty"`
	// After is the time after which it has asked to run again.
	After time.Duration `json:"after,omitempty"`
	// By are the steps or actions that block it.
	By      []string `json:"by,omitempty"`
	Actions []Step   `json:"actions,omitempty"`
}

// passed reports whether the steps after s were reached, as far as the state says.
func (s *Step) passed() bool {
	return s.State != StateFailed && s.State != StateWaiting && s.State != StateRequeued && !(s.State == StateStalled && len(s.Waits) > 0)
}

// A Run is one reconcile.
type Run struct {
	Began    time.Time      `json:"began"`
	Duration time.Duration  `json:"duration"`
	Result   journal.Result `json:"result,omitempty"` // empty while it runs
	Causes   []string       `json:"causes,omitempty"`
	Writes   []Write        `json:"writes,omitempty"`
}

// A Write is a write, or with an error an attempt.
type Write struct {
	What  string `json:"what"`
	Error string `json:"error,omitempty"`
}

// what says who reads what: "Password reads Secret shop/db-password".
func (u *Unwatched) what(c *Controller) string {
	who := "Controller " + c.Name
	if u.Step != "" {
		who = u.Step
	}
	if u.Object.Name != "" {
		return fmt.Sprintf("%s reads %s", who, u.Object)
	}
	text := fmt.Sprintf("%s lists objects of the kind %s", who, u.Object.Kind)
	if u.Object.Namespace != "" {
		text += " in " + u.Object.Namespace
	}
	return text
}

// isIn reports whether the text of a wait names what was read.
func (u *Unwatched) isIn(text string) bool {
	name := u.Object.String()
	rest, ok := strings.CutPrefix(text, name)
	return u.Object.Name != "" && ok && (rest == "" || strings.ContainsAny(rest[:1], ":,; "))
}

// Path is where an operator serves reports, below the address of its metrics.
const Path = "/debug/ctrlkit/explain"

// Unknown is the beginning of the answer of an operator that knows nothing about an object. It
// distinguishes that answer from the 404 of a server that has no such path.
const Unknown = "nothing is known"

// Headers of the answer that nothing is known.
const (
	// LeaderHeader is "true" if the process that was asked is the leader, "false" if it is not.
	LeaderHeader = "Ctrlkit-Leader"
	// HostHeader is the host name of the process; in a cluster, the name of its Pod.
	HostHeader = "Ctrlkit-Host"
	// NamespaceHeader is the namespace in which the process runs; absent outside a cluster.
	NamespaceHeader = "Ctrlkit-Namespace"
)

// Headers of every answer of a process that is a shard of a ring.
const (
	// ShardHeader and RingHeader are the names of both.
	ShardHeader, RingHeader = "Ctrlkit-Shard", "Ctrlkit-Ring"
	// AssignedHeader is the label of an object with the name of its shard, and DrainHeader the one
	// of an object that its shard has to hand over.
	AssignedHeader, DrainHeader = "Ctrlkit-Assigned-Label", "Ctrlkit-Drain-Label"
)
