// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package conditiontest

import "fmt"

// A Rule is a requirement on conditions. Its text is the name under which it is reported.
type Rule string

// The rules about one version of an object.
const (
	// RuleReadable: the object has a list of conditions, each of the form of a metav1.Condition.
	RuleReadable Rule = "readable"
	// RuleHasReady: there is a Ready condition. Tools that find none take the object for ready.
	RuleHasReady Rule = "has-ready"
	// RuleUnique: no two conditions have the same type.
	RuleUnique Rule = "unique"
	// RuleReadyAlone: while Ready is True, neither Reconciling nor Stalled is.
	RuleReadyAlone Rule = "ready-alone"
	// RuleOneOfTwo: Reconciling and Stalled are not both True.
	RuleOneOfTwo Rule = "one-of-two"
	// RuleSaysWhy: an object that is idle and not Ready is Reconciling or Stalled, unless it is
	// being deleted or Paused.
	RuleSaysWhy Rule = "says-why"
	// RuleValid: the API server accepts type, status and reason.
	RuleValid Rule = "valid"
	// RuleTimed: lastTransitionTime is set.
	RuleTimed Rule = "timed"
	// RuleObserved: while the operator is idle, observedGeneration is set and equals the generation
	// of the object; it is never a later one. A Paused object is exempt. Conditions other than
	// Ready, Reconciling and Stalled may be about an older generation while the object is not
	// Ready: the step that would set them was not reached.
	RuleObserved Rule = "observed"
	// RuleHasMessage: a condition that is known not to be healthy has a message: Ready that is not
	// True, Reconciling, Stalled and Paused that are, and every one that is Unknown.
	RuleHasMessage Rule = "has-message"
	// RuleHoldsStill: a message contains nothing that differs each time: timestamps, addresses in
	// memory, UUIDs, maps as Go prints them. A UUID that is part of a name ("pvc-..." and the UUID)
	// is allowed.
	RuleHoldsStill Rule = "holds-still"
	// RuleShortEnough: a message has at most 32,768 bytes, or the API server rejects the whole
	// status.
	RuleShortEnough Rule = "short-enough"
)

// The rules about two versions of an object.
const (
	// RuleSameObject: the versions are of one object, with one UID.
	RuleSameObject Rule = "same-object"
	// RuleMovesWithStatus: lastTransitionTime moves, forward, when the status changes, and only
	// then. Its resolution is a second: if the managed fields of the later version say that it was
	// written within a second of the time, the time may be the same. Without managed fields, as
	// with fake clients, let a second pass between the two versions.
	RuleMovesWithStatus Rule = "moves-with-status"
	// RuleNeverBack: observedGeneration does not decrease.
	RuleNeverBack Rule = "never-back"
	// RuleKeepsOrder: the types that are in both versions have the same order.
	RuleKeepsOrder Rule = "keeps-order"
)

// A Problem is a rule that is broken.
type Problem struct {
	Rule Rule
	// Text says where, what is wrong, and the remedy.
	Text string
}

// String returns the text, with the rule in brackets.
func (p Problem) String() string { return p.Text + " [" + string(p.Rule) + "]" }

// problems collects the problems that are found.
type problems []Problem

func (p *problems) add(rule Rule, format string, args ...any) {
	*p = append(*p, Problem{rule, fmt.Sprintf(format, args...)})
}
