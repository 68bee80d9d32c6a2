// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import "fmt"

// A ConditionRule is a requirement on conditions. Its text is the name under which it is reported.
type ConditionRule string

// The rules about one version of an object.
const (
	// ConditionRuleReadable: the object has a list of conditions, each of the form of a
	// metav1.Condition.
	ConditionRuleReadable ConditionRule = "readable"
	// ConditionRuleHasReady: there is a Ready condition. Tools that find none take the object for
	// ready.
	ConditionRuleHasReady ConditionRule = "has-ready"
	// ConditionRuleUnique: no two conditions have the same type.
	ConditionRuleUnique ConditionRule = "unique"
	// ConditionRuleReadyAlone: while Ready is True, neither Reconciling nor Stalled is.
	ConditionRuleReadyAlone ConditionRule = "ready-alone"
	// ConditionRuleOneOfTwo: Reconciling and Stalled are not both True.
	ConditionRuleOneOfTwo ConditionRule = "one-of-two"
	// ConditionRuleSaysWhy: an object that is idle and not Ready is Reconciling or Stalled, unless
	// it is being deleted or Paused.
	ConditionRuleSaysWhy ConditionRule = "says-why"
	// ConditionRuleValid: the API server accepts type, status and reason.
	ConditionRuleValid ConditionRule = "valid"
	// ConditionRuleTimed: lastTransitionTime is set.
	ConditionRuleTimed ConditionRule = "timed"
	// ConditionRuleObserved: while the operator is idle, observedGeneration is set and equals the
	// generation of the object; it is never a later one. A Paused object is exempt. Conditions
	// other than Ready, Reconciling and Stalled may be about an older generation while the object
	// is not Ready: the step that would set them was not reached.
	ConditionRuleObserved ConditionRule = "observed"
	// ConditionRuleHasMessage: a condition that is known not to be healthy has a message: Ready
	// that is not True, Reconciling, Stalled and Paused that are, and every one that is Unknown.
	ConditionRuleHasMessage ConditionRule = "has-message"
	// ConditionRuleHoldsStill: a message contains nothing that differs each time: timestamps,
	// addresses in memory, UUIDs, maps as Go prints them. A UUID that is part of a name ("pvc-..."
	// and the UUID) is allowed.
	ConditionRuleHoldsStill ConditionRule = "holds-still"
	// ConditionRuleShortEnough: a message has at most 32,768 bytes, or the API server rejects the
	// whole status.
	ConditionRuleShortEnough ConditionRule = "short-enough"
)

// The rules about two versions of an object.
const (
	// ConditionRuleSameObject: the versions are of one object, with one UID.
	ConditionRuleSameObject ConditionRule = "same-object"
	// ConditionRuleMovesWithStatus: lastTransitionTime moves, forward, when the status changes, and
	// only then. Its resolution is a second: if the managed fields of the later version say that it
	// was written within a second of the time, the time may be the same. Without managed fields, as
	// with fake clients, let a second pass between the two versions.
	ConditionRuleMovesWithStatus ConditionRule = "moves-with-status"
	// ConditionRuleNeverBack: observedGeneration does not decrease.
	ConditionRuleNeverBack ConditionRule = "never-back"
	// ConditionRuleKeepsOrder: the types that are in both versions have the same order.
	ConditionRuleKeepsOrder ConditionRule = "keeps-order"
)

// A ConditionProblem is a rule that is broken.
type ConditionProblem struct {
	Rule ConditionRule
	// Text says where, what is wrong, and the remedy.
	Text string
}

// String returns the text, with the rule in brackets.
func (p ConditionProblem) String() string { return p.Text + " [" + string(p.Rule) + "]" }

// problems collects the problems that are found.
type problems []ConditionProblem

func (p *problems) add(rule ConditionRule, format string, args ...any) {
	*p = append(*p, ConditionProblem{rule, fmt.Sprintf(format, args...)})
}
