// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions that are computed from the others.
const (
	// Ready is True when the object is as its spec wants.
	Ready = "Ready"
	// Reconciling is present, and True, while the operator works towards that, waits, or retries.
	Reconciling = "Reconciling"
	// Stalled is present, and True, when the operator can't continue before a person changes
	// something.
	Stalled = "Stalled"
	// Paused is present, and True, while the operator leaves the object alone on request.
	Paused = "Paused"
)

// PauseAnnotation on an object makes its engine leave it alone, its deletion included, unless the
// value is "false". The condition [Paused] reports that, and an invalid value, which counts as
// "true".
const PauseAnnotation = "ctrlkit.dev/paused"

// A Severity says how bad a condition is. The zero value is none; functions that need a severity
// panic on it.
type Severity int

// The severities, the worst last.
const (
	// SeverityInfo: on its way. Something is being created, or waited for.
	SeverityInfo Severity = iota + 1
	// SeverityWarning: something fails, and the operator retries.
	SeverityWarning
	// SeverityError: a person must act.
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

// A Declaration announces a condition that the operator sets. Only declared conditions can be set:
// they are present from the first reconcile on, and count for Ready.
type Declaration struct {
	// Type is the type of the condition, in upper camel case. Ready, Reconciling, Stalled and
	// Paused can't be declared.
	Type string
	// AbnormalTrue says that False is healthy, as of "Degraded". Otherwise True is, as of
	// "SecretFound".
	AbnormalTrue bool
	// Informational says that Ready does not depend on the condition. Otherwise Ready is not True
	// while the condition is not healthy.
	Informational bool
}

// healthy returns the status that is healthy.
func (d Declaration) healthy() metav1.ConditionStatus {
	if d.AbnormalTrue {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// unhealthy returns the status that is not, and is not Unknown.
func (d Declaration) unhealthy() metav1.ConditionStatus {
	if d.AbnormalTrue {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Reasons that this package sets.
const (
	// ReasonReady is the reason of Ready when all conditions are healthy.
	ReasonReady = "Ready"
	// ReasonNotReached is the reason of a condition that no step has set yet.
	ReasonNotReached = "NotReached"
	// reasonLastTryFailed is the reason of a condition that was healthy until the step that sets it
	// failed.
	reasonLastTryFailed = "LastTryFailed"
	// reasonLastTryPassed is the reason of a condition that is healthy again since that step has
	// passed without setting it.
	reasonLastTryPassed = "LastTryPassed"
)

// These are what the API server demands.
const (
	longestType   = 316
	longestReason = 1024
)

var (
	reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	typePattern   = regexp.MustCompile(
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` +
			`[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)

// Check returns an error if conditions can't be declared like this: because the API server would
// refuse a type, or because one is declared twice, or is computed.
func Check(declared []Declaration) error {
	seen := make(map[string]bool)
	for _, d := range declared {
		switch {
		case computed(d.Type):
			return fmt.Errorf("condition %q can't be declared: it is computed from the others", d.Type)
		case !typePattern.MatchString(d.Type) || len(d.Type) > longestType:
			return fmt.Errorf("condition %q can't be declared: "+
				"a type looks like \"SecretFound\" or \"example.com/SecretFound\"", d.Type)
		case seen[d.Type]:
			return fmt.Errorf("condition %q is declared twice: declare it once", d.Type)
		}
		seen[d.Type] = true
	}
	return nil
}

var computedTypes = []string{Ready, Reconciling, Stalled, Paused}

// computed reports whether the engine, and no step, sets conditions of this type.
func computed(conditionType string) bool { return slices.Contains(computedTypes, conditionType) }

// declarations are the declared conditions of one kind.
type declarations []Declaration

func (ds declarations) index(conditionType string) int {
	return slices.IndexFunc(ds, func(d Declaration) bool { return d.Type == conditionType })
}

// has reports whether a type is declared.
func (ds declarations) has(conditionType string) bool { return ds.index(conditionType) >= 0 }

// owns reports whether a type is declared or computed: the others belong to other controllers.
func (ds declarations) owns(conditionType string) bool {
	return computed(conditionType) || ds.has(conditionType)
}

// get returns the declaration of a type. It panics if there is none. Only a mistake in the caller's
// code can cause that, never its input: such a condition would be neither initialized nor counted.
func (ds declarations) get(conditionType string) Declaration {
	i := ds.index(conditionType)
	if i < 0 {
		panic("condition: " + conditionType + " is set but not declared: declare it")
	}
	return ds[i]
}

// rank returns the place of a type in the order in which conditions are stored: the computed ones,
// the declared ones, all others.
func (ds declarations) rank(conditionType string) int {
	if i := slices.Index(computedTypes, conditionType); i >= 0 {
		return i
	}
	if i := ds.index(conditionType); i >= 0 {
		return len(computedTypes) + i
	}
	return len(computedTypes) + len(ds)
}
