// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"regexp"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// WithTransitions changes what users create instead of running faults. The script is played until
// it updates or deletes an object for the first time. From the definitions of the custom resources
// that it has created until then, the simulator derives what users may do with each property:
// change it, set it to its smallest and largest value, empty, remove and add it, and set it to what
// the schema allows and makes no sense. Changes that the API server refuses are left out.
//
// For each transition there are two worlds. In one the script creates the object as changed. In the
// other the object is changed when the operator is idle, and then changed back. Both have to end
// alike (the oracle same-as-fresh), and the second one as without the change (recovers). If the
// operator can't do what a mistake asks for, or its last reconcile fails, a status or an Event has
// to say something (mistake-reported), and what worked may stay.
//
// Only those transitions are run whose names the regular expression matches: "memcached/shop
// spec.size: minimum, 1". WithTransitions panics if it is none.
func WithTransitions(expression string) Option {
	return func(s *settings) { s.transitions = regexp.MustCompile(expression) }
}

// WithFaults adds n plans to each transition that have one fault each, which strikes after the
// change. The run has to be like that of the transition without the fault. Transitions get other
// kinds of faults, at other places.
func WithFaults(n int) Option { return func(s *settings) { s.faults = n } }

// ByDesign declares what of the findings of transitions is meant, such as a queue that never
// shrinks: "^recovers: queue/.* spec.size". The regular expression is matched with ORACLE:
// TRANSITION. The reason is printed with the result. ByDesign panics if it is no regular
// expression.
func ByDesign(expression, reason string) Option {
	return func(s *settings) {
		s.meant = append(s.meant, &meant{expression: regexp.MustCompile(expression), reason: reason})
	}
}

// silent returns the oracles that do not judge runs. A transition may be a mistake, at which a
// reconcile fails: see [comparison.failure].
func (s *settings) silent() oracleSet {
	if s.transitions == nil {
		return s.without
	}
	silent := maps.Clone(s.without)
	silent[oracle.EndsWell] = ""
	return silent
}

// meant is an option ByDesign.
type meant struct {
	expression *regexp.Regexp
	reason     string
	plans      int // in which it matches a violation
}

// split returns the violations of a plan without those that are by design, and which options match.
func (s *settings) split(plan fault.Plan, all []oracle.Violation, writes []*report.Write) (violations []oracle.Violation, theirs []*report.Write, matched []int) {
	for n, v := range all {
		i := slices.IndexFunc(s.meant, func(m *meant) bool { return m.expression.MatchString(string(v.Oracle) + ": " + plan.Transition) })
		switch {
		case i < 0:
			violations, theirs = append(violations, v), append(theirs, writes[n])
		case !slices.Contains(matched, i):
			matched = append(matched, i)
		}
	}
	return violations, theirs, matched
}

// note counts the plans in which something is by design.
func (s *settings) note(which []int) {
	for _, i := range which {
		s.meant[i].plans++
	}
}
