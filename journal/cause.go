// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"strings"
)

// A CauseKind says what kind of event caused a reconcile.
type CauseKind string

// The kinds of causes.
const (
	// CauseOwnChange is a change of the object itself; CauseOwnWrite is one that the operator has
	// made.
	CauseOwnChange CauseKind = "own change"
	CauseOwnWrite  CauseKind = "own write"
	// CauseChildChange is a change of an object that has the reconciled one as its owner.
	CauseChildChange CauseKind = "child change"
	// CauseForeignChange is a change of another object that the operator watches.
	CauseForeignChange CauseKind = "foreign change"
	// CauseTimer is a requeue that an earlier reconcile asked for; CauseBackoff is a retry after a
	// failure.
	CauseTimer   CauseKind = "timer"
	CauseBackoff CauseKind = "backoff"
	// CauseStart is the first reconcile of an object after the operator has started, or after the
	// object was created.
	CauseStart CauseKind = "start"
	// CauseUnknown is something that was not recorded: a watch whose handler is not wrapped.
	CauseUnknown CauseKind = "unknown"
)

// A Cause is why an object is reconciled.
type Cause struct {
	Kind CauseKind
	// Verb is what happened to Object: created, updated or deleted; empty for timers.
	Verb   string
	Object Object
	// Times counts how often it happened since the last reconcile.
	Times int
}

// String describes the cause.
func (c Cause) String() string {
	text := string(c.Kind)
	if c.Object != (Object{}) && (c.Kind == CauseChildChange || c.Kind == CauseForeignChange) {
		text = strings.TrimSpace(c.Object.String() + " " + c.Verb)
	} else if c.Verb != "" {
		text += " (" + c.Verb + ")"
	}
	if c.Times > 1 {
		text += fmt.Sprintf(" %d times", c.Times)
	}
	return text
}

// MergeCauses adds a cause to causes, and returns them.
//
//   - A cause that is already there is counted: Times grows. A cause without a count happened once.
//   - When there are a dozen different ones, further ones are counted by kind only, without the
//     object, so that none is lost.
//   - As with append, use only the result afterwards.
func MergeCauses(causes []Cause, c Cause) []Cause {
	c.Times = max(c.Times, 1)
	for attempt := 0; ; attempt++ {
		for i := range causes {
			if causes[i].Kind == c.Kind && causes[i].Verb == c.Verb && causes[i].Object == c.Object {
				causes[i].Times = max(causes[i].Times, 1) + c.Times
				return causes
			}
		}
		if len(causes) < mostCauses || attempt > 0 {
			return append(causes, c)
		}
		c.Object, c.Verb = Object{Kind: c.Object.Kind}, ""
	}
}

const mostCauses = 12

func joinCauses(causes []Cause) string {
	texts := make([]string, len(causes))
	for i, c := range causes {
		texts[i] = c.String()
	}
	return strings.Join(texts, ", ")
}
