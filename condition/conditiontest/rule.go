// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package conditiontest

import "fmt"

// A Rule is a promise that conditions keep. Its text is the name by which it is reported.
type Rule string

// The rules about one version of an object.
const (
	// Readable: the object has a list of conditions, each of the form of a metav1.Condition.
	Readable Rule = "readable"
	// HasReady: there is a Ready condition. Who finds none takes the object for ready.
	HasReady Rule = "has-ready"
	// Unique: no two conditions have the same type.
	Unique Rule = "unique"
	// ReadyAlone: while Ready is True, neither Reconciling nor Stalled is.
	ReadyAlone Rule = "ready-alone"
	// OneOfTwo: Reconciling and Stalled are not both True.
	OneOfTwo Rule = "one-of-two"
	// SaysWhy: an object at rest that is not Ready is Reconciling or Stalled, unless it is being deleted or Paused.
	SaysWhy Rule = "says-why"
	// Valid: the API server accepts type, status and reason.
	Valid Rule = "valid"
	// Timed: lastTransitionTime is set.
	Timed Rule = "timed"
	// Observed: at rest, observedGeneration is set and that of the object; never a later one. A Paused object is not looked at. Conditions other than
	// Ready, Reconciling and Stalled may be about an older generation while the object is not Ready: what would set them was not reached.
	Observed Rule = "observed"
	// HasMessage: a condition that is known not to be good has a message: Ready that is not True, Reconciling, Stalled and Paused that are, and
	// every one that is Unknown.
	HasMessage Rule = "has-message"
	// HoldsStill: a message has nothing in it that is different each time: timestamps, addresses in memory, UUIDs, maps as Go prints them. A UUID
	// that is part of a name ("pvc-..." and the UUID) is not meant.
	HoldsStill Rule = "holds-still"
	// ShortEnough: a message has at most 32,768 bytes, or the API server refuses the whole status.
	ShortEnough Rule = "short-enough"
)

// The rules about two versions of an object.
const (
	// SameObject: the versions are of one object, with one UID.
	SameObject Rule = "same-object"
	// MovesWithStatus: lastTransitionTime moves when the status changes, forwards, and only then. It has seconds: where the managed fields of the
	// later version say that it was written within a second of the time, it may be the same. Without managed fields, as with fake clients,
	// let a second pass between the two versions.
	MovesWithStatus Rule = "moves-with-status"
	// NeverBack: observedGeneration does not become smaller.
	NeverBack Rule = "never-back"
	// KeepsOrder: the types that are in both versions have the same order.
	KeepsOrder Rule = "keeps-order"
)

// A Problem is a rule that is broken.
type Problem struct {
	Rule Rule
	// Text says where, what is wrong, and the way out.
	Text string
}

// String returns the text, with the rule in brackets.
func (p Problem) String() string { return p.Text + " [" + string(p.Rule) + "]" }

// problems collects what is wrong.
type problems []Problem

func (p *problems) add(rule Rule, format string, args ...any) {
	*p = append(*p, Problem{rule, fmt.Sprintf(format, args...)})
}
