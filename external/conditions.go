// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// ConditionAvailable says whether the resource exists and can be used. Ready depends on it alone.
const ConditionAvailable = "Available"

// The other conditions of an object. They inform, and decide nothing: what is done next follows from
// what is observed.
const (
	conditionCreating = "Creating"
	conditionUpdating = "Updating"
	conditionDeleting = "Deleting"
	conditionDrifted  = "Drifted" // the resource differs from the spec; the message has the paths
	conditionFailed   = "Failed"  // the system says so, or the last call has failed
)

// Reasons of conditions.
const (
	reasonAvailable       = "Available"
	reasonAbsent          = "Absent"
	reasonUnavailable     = "Unavailable"
	reasonBroken          = "Broken"
	reasonDrifted         = "Drifted"
	reasonInProgress      = "InProgress"
	reasonNone            = "None"
	reasonForeign         = "BelongsToAnother"
	reasonCreationUnknown = "CreationUnknown"
	reasonWrongAnnotation = "WrongAnnotation"
	reasonUnpublished     = "Unpublished"  // also of a failure: a key needs a detail that is not known, yet
	reasonNotObserved     = "NotObserved"  // now: a limit has prevented it
	reasonNeverSeen       = "NeverSeen"    // of an event: a resource is created again that the system has never shown
	reasonLeft            = "ResourceLeft" // of an event: a deletion has left a resource that is not the object's own
)

// noCause stands for the message of a resource that has failed.
const noCause = "the system does not say why"

func declarations() []condition.Declaration {
	all := []condition.Declaration{{Type: ConditionAvailable}}
	for _, kind := range []string{conditionCreating, conditionUpdating, conditionDeleting, conditionDrifted, conditionFailed} {
		all = append(all, condition.Declaration{Type: kind, AbnormalTrue: true, Informational: true})
	}
	return all
}

// mark sets all conditions by the observation.
func (s *session[T]) mark() {
	set := s.req.Conditions
	if set == nil {
		return
	}
	progress := func(kind string, state State) {
		if s.seen.State == state {
			set.MarkUnhealthy(kind, condition.SeverityInfo, reasonInProgress, cmp.Or(s.seen.Message, fmt.Sprintf("the system is %s the resource", state)))
			return
		}
		set.MarkHealthy(kind, reasonNone, "")
	}
	progress(conditionCreating, Creating)
	progress(conditionUpdating, Updating)
	progress(conditionDeleting, Deleting)
	switch {
	case len(s.seen.Drift) > 0 || s.seen.State == Drifted:
		set.MarkUnhealthy(conditionDrifted, condition.SeverityInfo, reasonDrifted, strings.Join(s.seen.Drift, ", "))
	default:
		set.MarkHealthy(conditionDrifted, reasonNone, "")
	}
	severity := condition.SeverityWarning
	if s.seen.Final {
		severity = condition.SeverityError
	}
	if s.seen.State == Broken {
		set.MarkUnhealthy(conditionFailed, severity, reasonBroken, cmp.Or(s.seen.Message, noCause))
	} else {
		set.MarkHealthy(conditionFailed, reasonNone, "")
	}
	switch {
	case s.seen.State == Absent:
		set.MarkUnhealthy(ConditionAvailable, condition.SeverityInfo, reasonAbsent, "the resource does not exist")
	case s.seen.State == Broken:
		set.MarkUnhealthy(ConditionAvailable, severity, reasonBroken, cmp.Or(s.seen.Message, noCause))
	case s.seen.State == Creating || s.seen.State == Deleting:
		set.MarkUnhealthy(ConditionAvailable, condition.SeverityInfo, reasonInProgress, s.waitsFor())
	case s.seen.State == Drifted && PolicyOf(s.req).Allows(policy.VerbUpdate):
		// It stays as it was, for the generation that it was reported for: it is not as this one
		// wants it.
	case s.seen.Unavailable != "":
		set.MarkUnhealthy(ConditionAvailable, condition.SeverityInfo, reasonUnavailable, s.seen.Unavailable)
	default:
		set.MarkHealthy(ConditionAvailable, reasonAvailable, "")
	}
}

// available reports whether the conditions say that the resource can be used.
func (s *session[T]) available() bool {
	if s.req.Conditions == nil {
		return false
	}
	c, ok := s.req.Conditions.Get(ConditionAvailable)
	return ok && c.Status == metav1.ConditionTrue
}

// markNotObserved says that what was available may have changed since, because a limit has prevented
// the observation.
func markNotObserved(set *condition.Set, why string) {
	if set == nil {
		return
	}
	if c, ok := set.Get(ConditionAvailable); ok && (c.Status == metav1.ConditionTrue || c.Reason == reasonNotObserved) {
		set.MarkUnknown(ConditionAvailable, reasonNotObserved, "waits for "+why)
	}
}

// markUnpublished says that the resource can't be used yet, because its users do not know how.
func (s *session[T]) markUnpublished() {
	if s.req.Conditions != nil {
		s.req.Conditions.MarkUnhealthy(ConditionAvailable, condition.SeverityInfo, reasonUnpublished, "the connection details are not published yet")
	}
}

// markAbsent says that there is no resource because a policy forbids to create it.
func (s *session[T]) markAbsent(why string) {
	s.mark()
	if s.req.Conditions != nil {
		s.req.Conditions.MarkUnhealthy(ConditionAvailable, condition.SeverityError, reasonAbsent, "the resource does not exist, and may not be created: "+why)
	}
}

// changes are the conditions of the calls that change something.
var changes = map[string]string{"create": conditionCreating, "update": conditionUpdating, "delete": conditionDeleting}

// markFailed says that a call has failed, and that what it was to change is still to be changed. A
// wait is no failure, and that the operator stops says nothing of the resource.
func markFailed[T client.Object](req *step.Request[T], what string, err error) {
	_, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err)
	set := req.Conditions
	if set == nil || failed == nil {
		return
	}
	c := req.Classify(err)
	if c.Class == failure.ClassCanceled {
		return
	}
	if kind, ok := changes[what]; ok {
		set.MarkUnhealthy(kind, condition.SeverityInfo, reasonInProgress, "the call has failed, and is repeated: see Failed")
	}
	set.MarkUnhealthy(conditionFailed, condition.SeverityWarning, c.Reason, err.Error())
}

// waitsFor says what the system is doing.
func (s *session[T]) waitsFor() string {
	text := fmt.Sprintf("the system, which is %s the resource %s", s.seen.State, s.id)
	if s.seen.Message != "" {
		text += ": " + s.seen.Message
	}
	return text
}

// broken is the failure of a resource that the system says has failed.
func broken(id string, seen *Observation) error {
	err := failure.Mark(fmt.Errorf("the resource %s has failed: %s", id, cmp.Or(seen.Message, noCause)), failure.WithReason(reasonBroken))
	if seen.Final {
		err = failure.Mark(err, failure.WithClass(failure.ClassTerminal))
	}
	return err
}

// withoutSystem adds to what prevents a deletion how to delete the object without the system.
func withoutSystem(err error) error {
	if err == nil || failure.Classify(err).Reason == reasonCreationUnknown {
		return err
	}
	const remedy = "to delete the object and leave its resource, set the annotation " + policy.ReclaimAnnotation + " to " + string(policy.ReclaimRetain)
	_, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err)
	if waits := ctrlkit.Waits(err); failed == nil && len(waits) > 0 { // a wait has no remedy beside its text
		return waitsWith(waits, remedy)
	}
	return remediable(err, remedy)
}

// waitsWith returns waits with a remedy, as an error.
func waitsWith(waits []ctrlkit.Waiting, remedy string) error {
	all := make([]error, len(waits))
	for i, w := range waits {
		if what := w.For + "; " + remedy; w.Every > 0 {
			all[i] = ctrlkit.Poll(what, w.Every)
		} else {
			all[i] = ctrlkit.Wait(what)
		}
	}
	return errors.Join(all...)
}

// remediable adds a remedy to a failure. It is a part of the text, too: conditions show that
// alone.
func remediable(err error, remedy string) error {
	all := remedy
	if given := remedyOf(err); given != "" {
		all = given + "; " + remedy
	}
	return failure.Mark(fmt.Errorf("%w; %s", err, remedy), failure.WithRemedy(all))
}

// remedyOf returns the remedy that an error was given, empty if it has that of its class.
func remedyOf(err error) string {
	c := failure.Classify(err)
	if c.Remedy == failure.RemedyOf(c.Class) {
		return ""
	}
	return c.Remedy
}
