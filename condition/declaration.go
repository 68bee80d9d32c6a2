// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The conditions that are computed from the others.
const (
	// Ready is true when the object is as its spec wants.
	Ready = "Ready"
	// Reconciling is there, and true, while the operator works towards that, waits, or tries again.
	Reconciling = "Reconciling"
	// Stalled is there, and true, when it can't go on before somebody changes something.
	Stalled = "Stalled"
	// Paused is there, and true, while the object is left alone because its owner wants that.
	Paused = "Paused"
)

// PauseAnnotation on an object makes its engine leave it alone while the value is "true", also its
// deletion. The condition [Paused] reports that.
const PauseAnnotation = "ctrlkit.dev/paused"

// A Severity says how bad a condition is. The zero value is none, and is refused where one is
// needed.
type Severity int

// The severities, the worst last.
const (
	// SeverityInfo: on its way. Something is being made, or waited for.
	SeverityInfo Severity = iota + 1
	// SeverityWarning: something fails, and the operator tries again by itself.
	SeverityWarning
	// SeverityError: somebody must act.
	SeverityError
)

// String returns "info", "warning" or "error".
func (s Severity) String() string {
	switch s {
	case SeverityInfo:
		return "info"
	case SeverityWarning:
		return "warning"
	case SeverityError:
		return "error"
	default:
		return "no severity"
	}
}

// A Declaration says that somebody keeps a condition.
type Declaration struct {
	// Type is the type of the condition, in upper camel case. Ready, Reconciling, Stalled and
	// Paused can't be declared.
	Type string
	// Polarity says which status is the good one: NormalTrue unless it is set.
	Polarity Polarity
	// Weight says whether the condition keeps the object from being Ready: Counts unless it is set.
	Weight Weight
}

// A Polarity says which status of a condition is good.
type Polarity int

// The polarities.
const (
	PolarityNormalTrue   Polarity = iota // True is good: "SecretFound"
	PolarityAbnormalTrue                 // False is good: "Degraded"
)

// A Weight says what a condition means for Ready.
type Weight int

// The weights.
const (
	WeightRequired      Weight = iota // Ready is not True while the condition is not good
	WeightInformational               // Ready does not depend on it
)

// good returns the status that is good.
func (d Declaration) good() metav1.ConditionStatus {
	if d.Polarity == PolarityAbnormalTrue {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// Reasons that this package sets.
const (
	// ReasonReady is the reason of Ready when all conditions are good.
	ReasonReady = "Ready"
	// ReasonNotReached is the reason of a condition that nobody has come to set yet.
	ReasonNotReached = "NotReached"
	// ReasonLastTryFailed is the reason of a condition that was good until whoever keeps it has
	// failed.
	ReasonLastTryFailed = "LastTryFailed"
	// ReasonLastTryPassed is the reason of one that is good again since that has passed without
	// setting it.
	ReasonLastTryPassed = "LastTryPassed"
)
