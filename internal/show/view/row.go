// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/health"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A State is how an object is, in one word.
type State string

// The states, in the order in which a person wants to see them: that of docs/operate.md.
const (
	Stalled  State = "stalled" // a person has to act
	Failing  State = "failing"
	NotReady State = "not ready" // the conditions alone say why
	Waiting  State = "waiting"
	Deleting State = "deleting"
	Paused   State = "paused"
	Ready    State = "ready"
)

var states = []State{Stalled, Failing, NotReady, Waiting, Deleting, Paused, Ready}

// States returns all states in that order.
func States() []State { return append([]State(nil), states...) }

func (s State) rank() int {
	for i, o := range states {
		if s == o {
			return i
		}
	}
	return len(states)
}

// Mark is the symbol of a state: nothing is said by color alone.
func (s State) Mark() string { return marks[s] }

var marks = map[State]string{Stalled: "■", Failing: "✗", Waiting: "…", Deleting: "⌫", NotReady: "○", Paused: "‖", Ready: "✓"}

// Class is the class of a state in the style sheet: tones are those of package drawing, and "unready".
func (s State) Class() string { return classes[s] }

var classes = map[State]string{
	Stalled: "bad", Failing: "bad", NotReady: "unready", Waiting: "waiting", Deleting: "again", Paused: "blocked", Ready: "good",
}

// A row is what the list says of an object.
type row struct {
	object          journal.Object
	state           State
	reason, message string
	since           time.Time // when the state began, as far as the object says
	hasReady        bool      // whether it has a condition Ready
	about           string    // the object that its trouble is about, "Secret shop/password", if it is known
	group           string    // the key of those with the same trouble
	alike           string    // the key of those whose trouble differs in names and numbers at most
	text            string    // lower case, for the filter
}

// A lastRun is how the last reconcile of an object has ended; its zero value is not known.
type lastRun struct {
	result journal.Result
	waits  string // what the object waits for first
}

func lastRunOf(result journal.Result, outcome journal.Outcome) lastRun {
	last := lastRun{result: result}
	if len(outcome.Waits) > 0 {
		last.waits = outcome.Waits[0].For
	}
	return last
}

// rowOf makes the row of an object. Without a condition Ready where others of the kind have one, an
// object is not ready yet.
func rowOf(obj client.Object, kind schema.GroupVersionKind, last lastRun, othersHaveReady bool) row {
	result := last.result
	r := row{object: journal.ObjectOf(kind.GroupKind(), client.ObjectKeyFromObject(obj)), since: obj.GetCreationTimestamp().Time}
	conditions, _ := condition.Of(obj) //nolint:errcheck // a kind without conditions has none
	ready := meta.FindStatusCondition(conditions, condition.Ready)
	if ready != nil {
		r.hasReady = true
		r.reason, r.message, r.since = ready.Reason, ready.Message, latest(r.since, ready.LastTransitionTime.Time)
	}
	switch stalled := meta.FindStatusCondition(conditions, condition.Stalled); {
	case obj.GetDeletionTimestamp() != nil:
		r.state, r.since = Deleting, obj.GetDeletionTimestamp().Time
	case result == journal.ResultPaused:
		r.state = Paused
	case ready == nil && othersHaveReady:
		r.state, r.reason, r.message = cmp.Or(ofResult[result], NotReady), "NotReconciled", "it has no condition Ready yet"
	case ready == nil:
		s := health.OfKind(obj, kind)
		r.state, r.reason, r.message = ofSummary[s.State], s.Reason, s.Message
	case ready.Status == metav1.ConditionTrue && (ready.ObservedGeneration == 0 || ready.ObservedGeneration == obj.GetGeneration()):
		r.state, r.reason, r.message = Ready, "", ""
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		r.state, r.reason, r.message = Stalled, cmp.Or(stalled.Reason, r.reason), cmp.Or(stalled.Message, r.message)
	case ready.Status == metav1.ConditionTrue:
		r.state, r.reason, r.message = NotReady, "Changed", "its conditions are about an earlier generation"
	default:
		r.state = cmp.Or(ofResult[result], ofConditions(ready, meta.FindStatusCondition(conditions, condition.Reconciling)), NotReady)
	}
	r.state = cmp.Or(r.state, NotReady)
	r.reason, r.message = explanation.OneLine(r.reason), explanation.OneLine(r.message)
	r.about = cmp.Or(objectIn(r.message), objectIn("waits for "+last.waits))
	r.group, r.alike = r.keys()
	r.text = strings.ToLower(r.object.String() + " " + r.object.Group + " " + string(r.state) + " " + r.reason + " " + r.message)
	return r
}

// ofConditions returns the state of an object that is not ready by its conditions alone, empty if
// they do not say it. Those of an engine have a condition Reconciling that repeats Ready, and the
// class of a failure is its reason. A reason of the operator's own says neither.
func ofConditions(ready, reconciling *metav1.Condition) State {
	if reconciling == nil || reconciling.Status != metav1.ConditionTrue || reconciling.Reason != ready.Reason || reconciling.Message != ready.Message {
		return ""
	}
	return ofReason[ready.Reason]
}

// ofReason has the reasons of packages step and external for a wait, and the classes of package
// failure that are worse than one.
var ofReason = func() map[string]State {
	all := map[string]State{"Waiting": Waiting, "InProgress": Waiting, "Absent": Waiting, "Unavailable": Waiting}
	for _, class := range []failure.Class{
		failure.ClassConflict, failure.ClassThrottled, failure.ClassTransient, failure.ClassNotFound,
		failure.ClassForbidden, failure.ClassInvalid, failure.ClassTerminal, failure.ClassPanic,
	} {
		err := failure.Mark(errors.New(""), failure.WithClass(class))
		if (failure.Table{}).Classify(err).Severity > condition.SeverityInfo {
			all[string(class)] = Failing
		}
	}
	return all
}()

var ofSummary = map[health.State]State{
	health.StateReady: Ready, health.StateProgressing: Waiting, health.StateFailed: Failing, health.StateTerminating: Deleting,
}

var ofResult = map[journal.Result]State{
	journal.ResultWaiting: Waiting, journal.ResultFailed: Failing, journal.ResultStalled: Stalled, journal.ResultPaused: Paused,
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
