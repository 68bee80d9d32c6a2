// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Set is the conditions of one object during one reconcile. It is safe for concurrent use:
// actions of a workflow and steps of a group may set conditions at the same time. Of two that set
// the same condition, the later one wins.
type Set struct {
	declared   []Declaration
	generation int64
	now        metav1.Time
	before     []metav1.Condition // as they were on the object

	mu         sync.Mutex // for all below
	conditions []metav1.Condition
	stored     []metav1.Condition  // as they were stored last; nil if they were not
	severities map[string]Severity // of what was set in this reconcile and is not good
	set        map[string]bool     // what was set in this reconcile
	doubted    map[string]bool     // what was not set because its step has failed
	failure    *failed
}

// A failed says what no declared condition says.
type failed struct {
	severity        Severity
	reason, message string
}

// These are what the API server demands.
const (
	longestType   = 316
	longestReason = 1024
)

var (
	reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	typePattern   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)

// Check returns an error if declarations can't be: types that the API server refuses, that are
// declared twice, or that are computed.
func Check(declared []Declaration) error {
	seen := make(map[string]bool)
	for _, d := range declared {
		switch {
		case computed(d.Type) || d.Type == Paused:
			return fmt.Errorf("condition %q can't be declared: it is computed from the others", d.Type)
		case !typePattern.MatchString(d.Type) || len(d.Type) > longestType:
			return fmt.Errorf("condition %q can't be declared: a type looks like \"SecretFound\" or \"example.com/SecretFound\"", d.Type)
		case seen[d.Type]:
			return fmt.Errorf("condition %q is declared twice: who of the two would set it?", d.Type)
		}
		seen[d.Type] = true
	}
	return nil
}

func computed(kind string) bool { return kind == Ready || kind == Reconciling || kind == Stalled }

// NewSet returns the conditions of obj, with the declared ones that it does not have as Unknown. A
// condition that is among retired and not declared is removed, and so are all but the first of a
// type that is declared or computed. Now is the transition time of what changes.
func NewSet(obj metav1.Object, declared []Declaration, retired []string, now time.Time) (*Set, error) {
	conditions, err := Of(obj)
	if err != nil {
		return nil, err
	}
	s := &Set{
		declared: declared, generation: obj.GetGeneration(), now: metav1.NewTime(now.Truncate(time.Second)), before: slices.Clone(conditions),
	}
	for _, c := range s.before {
		twice := meta.FindStatusCondition(s.conditions, c.Type) != nil
		if s.isOurs(c.Type) && twice || !s.isOurs(c.Type) && slices.Contains(retired, c.Type) {
			continue
		}
		s.conditions = append(s.conditions, c)
	}
	for _, d := range declared {
		if meta.FindStatusCondition(s.conditions, d.Type) == nil {
			s.put(d.Type, metav1.ConditionUnknown, ReasonNotReached, "it was not looked at yet")
		}
	}
	return s, nil
}

// isOurs says whether a type is declared or computed.
func (s *Set) isOurs(kind string) bool { return computed(kind) || kind == Paused || s.isDeclared(kind) }

func (s *Set) isDeclared(kind string) bool {
	return slices.ContainsFunc(s.declared, func(d Declaration) bool { return d.Type == kind })
}

// Get returns a condition as it is now, and whether the object has it.
func (s *Set) Get(kind string) (metav1.Condition, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := meta.FindStatusCondition(s.conditions, kind); c != nil {
		return *c, true
	}
	return metav1.Condition{}, false
}

// MarkHealthy sets a declared condition to its good status. The message may be empty.
func (s *Set) MarkHealthy(kind, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.declaration(kind)
	delete(s.severities, kind)
	s.noteSet(kind)
	s.put(kind, d.good(), reason, message)
}

// MarkUnhealthy sets a declared condition to its bad status. What is not good needs a message; without one it
// has the reason.
func (s *Set) MarkUnhealthy(kind string, severity Severity, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bad := metav1.ConditionFalse
	if s.declaration(kind).Polarity == PolarityAbnormalTrue {
		bad = metav1.ConditionTrue
	}
	s.note(kind, severity)
	s.put(kind, bad, reason, orElse(message, reason))
}

// MarkUnknown sets a declared condition to Unknown, which keeps the object from being Ready with
// severity Info.
func (s *Set) MarkUnknown(kind, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declaration(kind)
	s.note(kind, SeverityInfo)
	s.put(kind, metav1.ConditionUnknown, reason, orElse(message, reason))
}

func (s *Set) noteSet(kind string) {
	if s.set == nil {
		s.set = make(map[string]bool)
	}
	s.set[kind] = true
	delete(s.doubted, kind)
}

func (s *Set) note(kind string, severity Severity) {
	checkSeverity(kind, severity)
	s.noteSet(kind)
	if s.severities == nil {
		s.severities = make(map[string]Severity)
	}
	s.severities[kind] = severity
}

// checkSeverity and checkReason panic about what is a mistake of the caller: both are words of the
// operator's code.
func checkSeverity(kind string, severity Severity) {
	if severity < SeverityInfo || severity > SeverityError {
		panic("condition: " + kind + " is set without a severity: use Info, Warning or Error")
	}
}

func checkReason(kind, reason string) {
	if !reasonPattern.MatchString(reason) || len(reason) > longestReason {
		panic(fmt.Sprintf("condition: reason %q of %s: a reason looks like \"SecretNotFound\"", reason, kind))
	}
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// declaration returns the declaration of a type. To set what is not declared is a mistake of the
// caller that no input can cause: nobody would initialise such a condition, and nobody count it.
func (s *Set) declaration(kind string) Declaration {
	i := slices.IndexFunc(s.declared, func(d Declaration) bool { return d.Type == kind })
	if i < 0 {
		panic("condition: " + kind + " is set but not declared: declare it")
	}
	return s.declared[i]
}

// Declared says whether a type is declared.
func (s *Set) Declared(kind string) bool { return s.isDeclared(kind) }

// Worst returns the severity of the worst declared condition that counts and was set in this
// reconcile; zero if none was.
func (s *Set) Worst() Severity {
	s.mu.Lock()
	defer s.mu.Unlock()
	var worst Severity
	for _, d := range s.declared {
		if d.Weight == WeightRequired {
			worst = max(worst, s.severities[d.Type])
		}
	}
	return worst
}

// Doubt says that whoever keeps declared conditions has failed. Those that were good, and were not
// set in this reconcile, become Unknown with [ReasonLastTryFailed]: what was stored when all was
// well says nothing any more. They stay about the generation that they were about, and Ready does
// not count them beside the failure, which is their cause. Conditions that only inform stay as they
// are. [Set.Trust] ends the doubt.
func (s *Set) Doubt(kinds []string, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range kinds {
		d := s.declaration(kind)
		c := meta.FindStatusCondition(s.conditions, kind)
		if c == nil || s.set[kind] || d.Weight == WeightInformational || c.Status != d.good() && (c.Status != metav1.ConditionUnknown || c.Reason != ReasonLastTryFailed) {
			continue
		}
		if s.doubted == nil {
			s.doubted = make(map[string]bool)
		}
		s.doubted[kind] = true
		generation := c.ObservedGeneration
		s.put(kind, metav1.ConditionUnknown, ReasonLastTryFailed, orElse(message, ReasonLastTryFailed))
		c.ObservedGeneration = generation
	}
}

// Trust says that whoever keeps declared conditions has passed. Those that a [Set.Doubt] has made
// Unknown, and that were not set in this reconcile because they stay as they were, become good
// again, with [ReasonLastTryPassed].
func (s *Set) Trust(kinds []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range kinds {
		c := meta.FindStatusCondition(s.conditions, kind)
		if c != nil && !s.set[kind] && c.Status == metav1.ConditionUnknown && c.Reason == ReasonLastTryFailed {
			delete(s.doubted, kind)
			s.put(kind, s.declaration(kind).good(), ReasonLastTryPassed, "")
		}
	}
}

// Observed says that all declared conditions are about the present generation, also those that were
// not set because they stay as they were.
func (s *Set) Observed() { s.ObservedExcept() }

// ObservedExcept is [Set.Observed] without some kinds: whoever keeps them has not finished looking.
func (s *Set) ObservedExcept(kinds ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.conditions {
		if kind := s.conditions[i].Type; s.isDeclared(kind) && !slices.Contains(kinds, kind) {
			s.conditions[i].ObservedGeneration = s.generation
		}
	}
}

// OnlyPaused undoes everything and says that the object is left alone. An object that was never
// looked at is Ready Unknown: without Ready, others would take it for ready.
func (s *Set) OnlyPaused(reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conditions, s.severities, s.failure = slices.Clone(s.before), nil, nil
	s.pause(reason, message)
	if meta.FindStatusCondition(s.conditions, Ready) == nil {
		s.put(Ready, metav1.ConditionUnknown, reason, orElse(message, reason))
	}
}

// Calm makes all that is not good count as Info: nobody has to act on it any more, because the
// object is about to go.
func (s *Set) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.severities, s.failure = nil, nil
}

// MarkFailed says what went wrong where no declared condition says it. Of several the worst stays, and
// the first of those.
func (s *Set) MarkFailed(severity Severity, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	checkSeverity("what has failed", severity)
	checkReason("what has failed", reason)
	if s.failure == nil || severity > s.failure.severity {
		s.failure = &failed{severity, reason, orElse(message, reason)}
	}
}

// SetPaused says that the object is left alone, and with an empty reason that it is not any more.
func (s *Set) SetPaused(reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause(reason, message)
}

func (s *Set) pause(reason, message string) {
	if reason == "" {
		s.remove(Paused)
		return
	}
	s.put(Paused, metav1.ConditionTrue, reason, orElse(message, reason))
}

// put changes a condition. What counts is what was stored, not what was set a moment ago: a
// condition that goes and comes back within one reconcile has not changed. The transition time
// moves with the status only.
func (s *Set) put(kind string, status metav1.ConditionStatus, reason, message string) {
	checkReason(kind, reason)
	c := metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: shorten(message, longestMessage),
		ObservedGeneration: s.generation, LastTransitionTime: s.now,
	}
	if b := meta.FindStatusCondition(s.before, kind); b != nil && b.Status == status {
		if !b.LastTransitionTime.IsZero() {
			c.LastTransitionTime = b.LastTransitionTime
		}
	}
	if i := slices.IndexFunc(s.conditions, func(c metav1.Condition) bool { return c.Type == kind }); i >= 0 {
		s.conditions[i] = c
		return
	}
	s.conditions = append(s.conditions, c)
}

func (s *Set) remove(kind string) {
	s.conditions = slices.DeleteFunc(s.conditions, func(c metav1.Condition) bool { return c.Type == kind })
}

// Summarize computes Ready, Reconciling and Stalled from the declared conditions that count and
// from what has [Set.MarkFailed].
//
// Ready is True when all are good and about the present generation: what was set before the spec
// changed, and was neither set nor [Set.Observed] since, says nothing about the object as it is.
// Otherwise Ready has the reason and the message of the worst, the first declared of those, and
// says which condition that is and how many others there are. A severity of Error makes the object
// Stalled, a lesser one Reconciling.
func (s *Set) Summarize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	worst, kind, others := s.worst()
	if worst == nil {
		s.put(Ready, metav1.ConditionTrue, ReasonReady, "")
		s.remove(Reconciling)
		s.remove(Stalled)
		return
	}
	message, more := worst.message, ""
	if kind != "" && !strings.HasPrefix(message, kind+": ") {
		message = kind + ": " + message
	}
	if others > 0 {
		more = fmt.Sprintf(" (and %d more)", others)
	}
	message = shorten(message, longestMessage-len(more)) + more
	s.put(Ready, metav1.ConditionFalse, worst.reason, message)
	if worst.severity == SeverityError {
		s.put(Stalled, metav1.ConditionTrue, worst.reason, message)
		s.remove(Reconciling)
		return
	}
	s.put(Reconciling, metav1.ConditionTrue, worst.reason, message)
	s.remove(Stalled)
}

// worst returns what is worst, the type of the condition that says it (none for what has failed),
// and how many others are not good. A good one about an older generation counts only when nothing
// else does.
func (s *Set) worst() (worst *failed, kind string, others int) {
	found, old := 0, ""
	if s.failure != nil {
		worst, found = s.failure, 1
	}
	for _, d := range s.declared {
		c := meta.FindStatusCondition(s.conditions, d.Type)
		if d.Weight == WeightInformational || c == nil {
			continue
		}
		if c.Status == d.good() {
			if old == "" && c.ObservedGeneration != s.generation {
				old = d.Type
			}
			continue
		}
		if c.Reason != ReasonNotReached && !s.doubted[d.Type] {
			found++ // one that is not reached, or not known, is so because of another, and tells nothing more
		}
		if severity := s.severity(*c); worst == nil || severity > worst.severity {
			worst, kind = &failed{severity, c.Reason, c.Message}, d.Type
		}
	}
	if worst == nil && old != "" {
		return &failed{SeverityInfo, ReasonNotReached, "it was not looked at since the spec has changed"}, old, 0
	}
	return worst, kind, max(0, found-1)
}

// HoldMessages gives back to each condition the message that it had on the object if status and
// reason, and the generation that they are about, are still the same, and says whether there was
// one. Call it after [Set.Summarize] when the texts come from an error that may say something else
// at each try: a message that changes makes a write, the write makes an event, and the event makes
// the next try.
func (s *Set) HoldMessages() bool { return s.hold(func(string, string) bool { return true }) }

// HoldNumbers is HoldMessages for messages that say the same in other numbers (see [Same]). Call it
// when the texts come from an error. Progress that counts ("2 of 3 replicas are ready") must not be
// held.
func (s *Set) HoldNumbers() bool { return s.hold(Same) }

func (s *Set) hold(old func(before, now string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := false
	for i := range s.conditions {
		c := &s.conditions[i]
		b := meta.FindStatusCondition(s.before, c.Type)
		if b != nil && b.Status == c.Status && b.Reason == c.Reason && b.ObservedGeneration == c.ObservedGeneration && b.Message != c.Message && old(b.Message, c.Message) {
			c.Message, held = b.Message, true
		}
	}
	return held
}

// NewMessages says whether there is a condition whose message alone is another than on the object.
func (s *Set) NewMessages() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.conditions, func(c metav1.Condition) bool {
		b := meta.FindStatusCondition(s.before, c.Type)
		return b != nil && b.Status == c.Status && b.Reason == c.Reason && b.Message != c.Message
	})
}

// A Change is a condition whose status or reason is not what it was on the object.
type Change struct {
	metav1.Condition
	Severity Severity // zero if it is good now
}

// Changes returns the declared conditions, and Ready, whose status or reason has changed.
func (s *Set) Changes() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []Change
	for _, c := range s.sorted() {
		b := meta.FindStatusCondition(s.before, c.Type)
		if c.Type != Ready && !s.isDeclared(c.Type) || b != nil && b.Status == c.Status && b.Reason == c.Reason {
			continue
		}
		changes = append(changes, Change{c, s.severity(c)})
	}
	return changes
}

// severity says how bad a declared condition is, or Ready.
func (s *Set) severity(c metav1.Condition) Severity {
	if c.Type == Ready {
		worst, _, _ := s.worst()
		if worst == nil {
			return 0
		}
		return worst.severity
	}
	if c.Status == s.declaration(c.Type).good() {
		return 0
	}
	return max(s.severities[c.Type], SeverityInfo)
}

// Conditions returns the conditions in the order in which they are stored: the computed ones first,
// then the declared ones, then those of others in the order in which they were.
func (s *Set) Conditions() []metav1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}

func (s *Set) sorted() []metav1.Condition {
	sorted := slices.Clone(s.conditions)
	slices.SortStableFunc(sorted, func(a, b metav1.Condition) int { return s.rank(a.Type) - s.rank(b.Type) })
	return sorted
}

func (s *Set) rank(kind string) int {
	if i := slices.Index([]string{Ready, Reconciling, Stalled, Paused}, kind); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(s.declared, func(d Declaration) bool { return d.Type == kind }); i >= 0 {
		return 10 + i
	}
	return 10 + len(s.declared)
}

// Store gives obj the conditions.
func (s *Set) Store(obj any) error {
	s.stored = s.Conditions()
	return Store(obj, slices.Clone(s.stored))
}
