// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"
	"strings"
)

// What a type of condition says of an object. The order within a table decides which of several
// conditions is named; the order of the object's list does not count.
var (
	// failures say by True that an object has failed.
	failures = []string{"Stalled", "Degraded", "Failed", "ReplicaFailure", "Denied", "InvalidRequest", "Dangling"}
	// activities say by True that a controller is at work.
	activities = []string{"Reconciling", "Progressing", "RollingOut", "ScalingUp", "ScalingDown", "Updating", "Upgrading", "NotReady"}
	// goals say by True that all is well, and by anything else that it is not, or not yet.
	goals = []string{"Ready", "Available", "Succeeded", "Complete", "Completed", "Healthy", "Established", "Programmed", "Accepted", "Reconciled", "ResolvedRefs"}
	// requests say by False that the object can't be what it should be.
	requests = []string{"Accepted", "Synced", "LastAsyncOperation"}
)

// activityIsOver are reasons of Progressing=True that mean the reverse, in Deployments and in the
// kinds that copy them, and in Argo Rollouts.
var activityIsOver = []string{"NewReplicaSetAvailable", "AsExpected", "RolloutHealthy"}

// failureReasons are the reasons by which a goal that is not reached says that it will not be.
var failureReasons = []string{"Error", "Failed", "ReconcileError", "RevisionFailed", "SecretSyncedError", "Denied"}

// byConditions judges an object by its conditions.
func byConditions(d *document) (Summary, bool) {
	if c, ok := d.first(failures, "True"); ok && !c.stale {
		return c.says(StateFailed), true
	}
	for _, kind := range activities {
		c, ok := d.condition(kind)
		if ok && c.status == "True" && !(kind == "Progressing" && slices.Contains(activityIsOver, c.reason)) {
			return c.says(StateProgressing), true
		}
	}
	if s, ok := byRequests(d); ok {
		return s, true
	}
	ready, hasReady := d.condition("Ready")
	if !hasReady || ready.status != "True" {
		if c, ok := d.severe(); ok {
			return c.says(StateFailed), true
		}
		if i := slices.IndexFunc(d.conditions, func(c cond) bool { return c.status == "False" && c.reason == "Error" && !c.stale }); i >= 0 {
			return d.conditions[i].says(StateFailed), true
		}
	}
	if hasReady {
		return ready.asGoal(d), true // it sums the others up
	}
	reached := false
	for _, kind := range goals {
		c, ok := d.condition(kind)
		if !ok {
			continue
		}
		if s := c.asGoal(d); s.State != StateReady {
			return s, true
		}
		reached = true
	}
	return Summary{State: StateReady}, reached
}

// byRequests judges by conditions that say whether the spec could be used: Synced of Crossplane,
// Accepted of the Gateway API.
func byRequests(d *document) (Summary, bool) {
	c, ok := d.first(requests, "False")
	if !ok || c.stale || c.reason == "Pending" || c.reason == "ReconcilePaused" {
		return Summary{}, false
	}
	return c.says(StateFailed), true
}

// severe returns the condition of the first type in the alphabet that is false with severity Error:
// in Cluster API, a person has to act.
func (d *document) severe() (cond, bool) {
	var found cond
	for _, c := range d.conditions {
		if c.status == "False" && c.severity == "Error" && !c.stale && (found.kind == "" || c.kind < found.kind) {
			found = c
		}
	}
	return found, found.kind != ""
}

// asGoal judges by one condition that is to become true.
func (c cond) asGoal(d *document) Summary {
	switch {
	case c.stale:
		return Summary{StateProgressing, ReasonNotObserved, "its controller has not seen the last change"}
	case c.status == "True":
		return Summary{State: StateReady}
	case c.status == "False" && c.isFinal(d):
		return c.says(StateFailed)
	}
	return c.says(StateProgressing)
}

// isFinal reports whether a goal that is false needs a change.
func (c cond) isFinal(d *document) bool {
	switch {
	case c.severity == "Error" || slices.Contains(failureReasons, c.reason):
		return true
	case c.kind == "Succeeded": // of Tekton and Knative: it ran, and failed
		return true
	case c.kind == "Available": // of OpenShift: a person has to act at once
		return strings.HasSuffix(d.gk.Group, ".openshift.io")
	}
	return false
}

func (c cond) says(s State) Summary { return Summary{s, c.reasonOr(c.kind), c.text()} }
