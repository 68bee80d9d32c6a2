// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// ConditionProblems returns what is wrong with the conditions of an object whose operator is idle:
// it has nothing left to do before something changes. First comes what is wrong with the conditions
// together, then what is wrong with each, in their order.
func ConditionProblems(obj client.Object) []ConditionProblem {
	o, found := read(obj)
	if o == nil {
		return found
	}
	found = append(found, o.wrongTogether()...)
	for _, c := range o.conditions {
		found = append(found, wrongForm(c)...)
		found = append(found, o.wrongGeneration(c)...)
		found = append(found, wrongMessage(c)...)
	}
	return found
}

// wrongTogether returns how the conditions contradict one another.
func (o *object) wrongTogether() (found problems) {
	for i, c := range o.conditions {
		if slices.ContainsFunc(o.conditions[:i], func(d placed) bool { return d.Type == c.Type }) {
			found.add(ConditionRuleUnique, "%s is there a second time: "+
				"keep one of each type, and declare the list with listType=map and listMapKey=type", c)
		}
	}
	ready, ok := o.find(condition.Ready)
	if !ok {
		found.add(ConditionRuleHasReady, "status.conditions has no %q: "+
			"set it from the first reconcile on, Unknown as long as nothing is known", condition.Ready)
		return found
	}
	reconciling, stalled := o.is(condition.Reconciling), o.is(condition.Stalled)
	switch {
	case o.is(condition.Ready) && (reconciling || stalled):
		found.add(ConditionRuleReadyAlone, "%s is True beside %s: remove that, or set it to False", ready, both(reconciling, stalled))
	case reconciling && stalled:
		found.add(ConditionRuleOneOfTwo, "status.conditions has Reconciling and Stalled both True: "+
			"set Reconciling if the operator continues by itself, or Stalled if a person must act")
	case !o.is(condition.Ready) && !reconciling && !stalled && !o.deleting && !o.is(condition.Paused):
		found.add(ConditionRuleSaysWhy, "%s is %s, and nothing says what comes next: "+
			"set Reconciling if the operator continues by itself, or Stalled if a person must act", ready, ready.Status)
	}
	return found
}

func both(reconciling, stalled bool) string {
	switch {
	case reconciling && stalled:
		return "Reconciling and Stalled that are True"
	case reconciling:
		return "Reconciling that is True"
	default:
		return "Stalled that is True"
	}
}

// The patterns and bounds are those of the markers of metav1.Condition, which every
// CustomResourceDefinition generated from it has.
var (
	typePattern = regexp.MustCompile(
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` +
			`(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

const (
	longestType    = 316
	longestReason  = 1024
	longestMessage = 32768
)

// wrongForm returns what of a condition the API server would reject.
func wrongForm(c placed) (found problems) {
	if !typePattern.MatchString(c.Type) || len(c.Type) > longestType {
		found.add(ConditionRuleValid, "%s: the API server rejects the type: write it like \"SecretFound\" or \"example.com/SecretFound\"", c)
	}
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		found.add(ConditionRuleValid, "%s: the API server rejects the status %q: it is True, False or Unknown", c, c.Status)
	}
	if !reasonPattern.MatchString(c.Reason) || len(c.Reason) > longestReason {
		found.add(ConditionRuleValid, "%s: the API server rejects the reason %q: write it like \"SecretNotFound\"", c, c.Reason)
	}
	if len(c.Message) > longestMessage {
		found.add(ConditionRuleShortEnough, "%s: the message has %d bytes, and the API server accepts %d: cut it", c, len(c.Message), longestMessage)
	}
	if c.LastTransitionTime.IsZero() {
		found.add(ConditionRuleTimed, "%s: lastTransitionTime is not set: set it to the time at which the status changed", c)
	}
	return found
}

// wrongGeneration returns how a condition is not about the object as it is.
func (o *object) wrongGeneration(c placed) (found problems) {
	const remedy = "copy metadata.generation of the object that was reconciled"
	computed := c.Type == condition.Ready || c.Type == condition.Reconciling || c.Type == condition.Stalled
	switch {
	case c.ObservedGeneration > o.generation:
		found.add(ConditionRuleObserved, "%s: observedGeneration is %d, and the generation of the object is only %d: %s",
			c, c.ObservedGeneration, o.generation, remedy)
	case c.ObservedGeneration == o.generation || o.is(condition.Paused):
	case c.ObservedGeneration == 0:
		found.add(ConditionRuleObserved, "%s: observedGeneration is not set: %s", c, remedy)
	case computed || o.is(condition.Ready):
		found.add(ConditionRuleObserved, "%s: observedGeneration is %d, and the generation of the object is %d: %s, also when nothing else changes",
			c, c.ObservedGeneration, o.generation, remedy)
	}
	return found
}

// A volatile part of a message differs each time.
type volatile struct {
	pattern      *regexp.Regexp // the first group is the part
	what, remedy string
}

var volatiles = []volatile{
	{
		regexp.MustCompile(`(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[-+]\d\d:?\d\d)?)`),
		"a timestamp", "leave it out: lastTransitionTime says when",
	},
	{regexp.MustCompile(`\b(0x[0-9a-f]{6,16})\b`), "an address in memory", "print what the pointer points to"},
	{
		regexp.MustCompile(`(?:^|[^-\w])([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})(?:$|[^-\w])`),
		"a UUID", "name the thing, and leave request ids to the log",
	},
	{regexp.MustCompile(`\b(map\[(?:\]|[^\]]*:[^\]]*\]?))`), "a map as Go prints it", "say which of it matters"},
}

// wrongMessage returns what is wrong with a message.
func wrongMessage(c placed) (found problems) {
	if c.Message == "" && unhealthy(c) {
		found.add(ConditionRuleHasMessage, "%s is %s without a message: say what is missing, and what a person can do", c, c.Status)
	}
	for _, v := range volatiles {
		if match := v.pattern.FindStringSubmatch(c.Message); match != nil {
			found.add(ConditionRuleHoldsStill, "%s: the message has %s, %q: %s", c, v.what, shown(match[1]), v.remedy)
		}
	}
	return found
}

// shown returns the beginning of a long text.
func shown(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// unhealthy reports whether it is known that a condition is not healthy. Of a declared one that is
// True or False, only the operator knows.
func unhealthy(c placed) bool {
	switch c.Type {
	case condition.Ready:
		return c.Status != metav1.ConditionTrue
	case condition.Reconciling, condition.Stalled, condition.Paused:
		return c.Status != metav1.ConditionFalse
	default:
		return c.Status == metav1.ConditionUnknown
	}
}
