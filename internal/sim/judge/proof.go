// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// setProving records what is done to the idle operator.
func (l *ledger) setProving(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proving, l.proof = what, l.now()
}

// isProving returns what was done to the idle operator a moment ago, or "".
func (l *ledger) isProving() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now().Sub(l.proof) > l.pace.Proof {
		return ""
	}
	return l.proving
}

// duringProof reports whether something was done to the idle operator, a moment ago or longer.
func (l *ledger) duringProof() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proving != ""
}

// notePeriodic records what the operator does although no one else has changed anything for some
// time: it does that by the clock, and may also do it after a resync. Only a run without faults
// shows it, because a fault is a cause that is no change.
func (l *ledger) notePeriodic(c *change) {
	switch {
	case !c.byOperator:
		l.caused = l.now()
	case l.byTheClock():
		l.periodic[workOf(c)] = true
	}
}

func (l *ledger) byTheClock() bool {
	return l.reference == nil && l.faultless && !l.duringProof() && l.now().Sub(l.caused) > l.pace.Clock
}

// isPeriodic reports whether the operator does something by the clock, so that a resync or a
// restart need not be its cause.
func (l *ledger) isPeriodic(work string) bool {
	return l.periodic[work] || l.reference != nil && l.reference.periodic[work]
}

// workOf names what is done in a change of the cluster, whatever the object.
func workOf(c *change) string {
	return c.Verb + " " + c.Resource.GroupResource().String() + " " + c.Subresource
}

// noteFinalizers records which finalizers the operator adds.
func (l *ledger) noteFinalizers(c *change) {
	if !c.byOperator || c.New == nil {
		return
	}
	before := map[string]bool{}
	if c.Old != nil {
		for _, f := range (&unstructured.Unstructured{Object: c.Old}).GetFinalizers() {
			before[f] = true
		}
	}
	for _, f := range (&unstructured.Unstructured{Object: c.New}).GetFinalizers() {
		if before[f] || f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents {
			continue
		}
		if l.held[c.UID] == nil {
			l.held[c.UID] = map[string]bool{}
		}
		l.held[c.UID][f] = true
	}
}

// noteConditions records which conditions there are, with which status.
func (l *ledger) noteConditions(c *change) {
	for kind, condition := range conditionsOf(statusOf(c.New)) {
		status, _ := condition["status"].(string)
		l.said[said(c.canonical, kind, status)] = true
	}
}

func said(canonical, kind, status string) string { return canonical + " " + kind + "=" + status }

// comesByTheClock reports whether a difference may be there because the run has come to a checkpoint
// earlier or later than the run without faults, and the operator has done in the meantime what it
// does by the clock: there are other objects of a kind that it creates so, or the status of one is
// another that it writes so. What was due before an object was replaced is not due for the new one.
// A condition does not come so if it never had its status without faults.
func (l *ledger) comesByTheClock(checkpoint int, got snapshot.Snapshot, d oracle.Difference) bool {
	if checkpoint >= len(l.times) || checkpoint >= len(l.reference.times) || l.times[checkpoint] == l.reference.times[checkpoint] && !l.replaces {
		return false
	}
	kind, _, _ := strings.Cut(d.Thing, " ")
	does := func(subresource string, verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(verb string) bool { return l.isPeriodic(verb + " " + kind + " " + subresource) })
	}
	switch {
	case d.Path == "":
		return does("", "create", "patch", "delete", "deletecollection")
	case strings.HasPrefix(d.Path, ".status."):
		return does("status", "update", "patch") && !l.isUnheardOf(got, d)
	}
	return false
}

// isUnheardOf reports whether a difference is a condition with a status that it never had without
// faults.
func (l *ledger) isUnheardOf(got snapshot.Snapshot, d oracle.Difference) bool {
	kind, ok := conditionOf(d)
	if !ok {
		return false
	}
	status := got[d.Thing][conditionsPath+kind+"].status"]
	return status != "" && !l.reference.said[said(d.Thing, kind, status)]
}
