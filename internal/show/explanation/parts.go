// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The parts of the text of an explanation, for those that show it in another form. All are on one
// line each, without control characters.

// Head returns what the text begins with: the state of the object, and the reason.
func (x *Explanation) Head() []string {
	p := &page{x: x}
	p.head()
	lines := strings.Split(strings.TrimSuffix(p.text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// Advice returns what a person can do, and how much more is left out.
func (x *Explanation) Advice() (all []Advice, more int) { return (&page{x: x}).advise() }

// Plans returns what a controller does now or next: "(running for 3s)", or nothing.
func (x *Explanation) Plans(c *Controller) string { return oneLine((&page{x: x}).plans(c)) }

// StateOf returns the state of a step in words; beside are the steps of the same list.
func (x *Explanation) StateOf(s *Step, beside []Step) string {
	return oneLine((&page{x: x}).stateOf(s, beside))
}

// Mark returns the symbol of a step.
func (s *Step) Mark() string { return s.mark() }

// What says who reads what, and that nothing watches it.
func (u *Unwatched) What(c *Controller) string { return short(u.what(c)) }

// Conditions returns those of the object.
func (x *Explanation) Conditions() []metav1.Condition { return x.objectConditions() }

// Ours reports whether a finalizer is that of a controller in the report.
func (x *Explanation) Ours(finalizer string) bool { return (&page{x: x}).ours(finalizer) }

// OneLine joins the lines of a text, escapes what acts on a terminal, and cuts what is too long.
func OneLine(text string) string { return short(text) }
