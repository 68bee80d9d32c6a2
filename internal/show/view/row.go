// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"errors"
	"hash/fnv"
	"regexp"
	"strconv"
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

// The states, in the order in which a person wants to see them.
const (
	Stalled  State = "stalled" // a person has to act
	Failing  State = "failing"
	Waiting  State = "waiting"
	Deleting State = "deleting"
	NotReady State = "not ready" // why is not known
	Paused   State = "paused"
	Ready    State = "ready"
)

var states = []State{Stalled, Failing, Waiting, Deleting, NotReady, Paused, Ready}

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

// Class is the class of a state in the style sheet: tones are those of package drawing.
func (s State) Class() string { return classes[s] }

var classes = map[State]string{
	Stalled: "bad", Failing: "bad", Waiting: "waiting", Deleting: "again", NotReady: "waiting", Paused: "blocked", Ready: "good",
}

// A row is what the list says of an object.
type row struct {
	object          journal.Object
	state           State
	reason, message string
	since           time.Time // when the state began, as far as the object says
	hasReady        bool      // whether it has a condition Ready
	group           string    // the key of the group
	text            string    // lower case, for the filter
}

// rowOf makes the row of an object. The result is that of its last reconcile, empty if that is not
// known. Without a condition Ready where others of the kind have one, an object is not ready yet.
func rowOf(obj client.Object, kind schema.GroupVersionKind, result journal.Result, othersHaveReady bool) row {
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
	r.group = r.groupKey()
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

var (
	numbers = regexp.MustCompile(`[0-9]+`)
	uids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// common returns the message without what differs between objects with the same trouble: the name of
// the object, and numbers.
func (r *row) common() string {
	text := r.message
	if len(r.object.Name) > 2 {
		text = strings.ReplaceAll(text, r.object.Name, "…")
	}
	return numbers.ReplaceAllString(uids.ReplaceAllString(text, "…"), "#")
}

// groupKey is the same for objects with the same trouble, also if the result of the last reconcile is
// known of some of them only.
func (r *row) groupKey() string {
	state := r.state
	if state == Waiting || state == Failing {
		state = NotReady
	}
	h := fnv.New64a()
	for _, part := range []string{string(state), r.reason, r.common()} {
		_, _ = h.Write([]byte(part + "\x00")) // never fails
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
