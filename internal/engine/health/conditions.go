// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"regexp"
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
	goals = []string{"Ready", "Available", "Succeeded", "Complete", "Completed", "Healthy", "Installed", "Established", "Programmed", "Accepted", "Reconciled", "ResolvedRefs"}
	// requests say by False that the object can't be what it should be.
	requests = []string{"Accepted", "Valid", "Synced", "LastAsyncOperation"}
	// pauses say by True that no controller is at work on an object.
	pauses = []string{"Paused", "ReconciliationPaused", "Suspended"}
)

// Types that end in these words are failures, or goals, of objects that have none of the types
// above: ErrorOccurred of Argo, ControlPlaneReady of Cluster API, ACK.ResourceSynced of AWS.
var (
	likeFailure = regexp.MustCompile(`(Errors?|Failure|Failed|ErrorOccurred|Terminal|Degraded)$`)
	isFailure   = regexp.MustCompile(`^Invalid[A-Z]`)
	likeGoal    = regexp.MustCompile(`(Ready|Available|Healthy|Active|Valid|Validated|Synced|Synchronized|Deployed|Initialized|Provisioned|Scheduled|Created|` +
		`Registered|Bound|Reserved|Admitted|Issued|Configured|Applied|Attached|Connected|Launched|Installed|Reconciled|Success|UpToDate|Compliant|[a-z](ed|able))$`)
	noGoal = regexp.MustCompile(`(^|\.)(Not|No)[A-Z]|(Update|Upgrade)s?Available$|` +
		`(Abort|Block|Cancel+|Cordon|Corrupt|Damag|Delet|Deni|Deprecat|Disabl|Disrupt|Drift|Error|Evict|Expir|Fail|Fault|Finish|Hibernat|Interrupt|Limit|Orphan|Overload|Paus|` +
		`Preempt|Quarantin|Reject|Remov|Retri|Revok|Stall|Stopp|Suspend|Taint|Terminat|Throttl|Upgrad|Requir|Need|Exceed)ed$|(^|[a-z])(Un|Consolidat|Upgrad|Preempt|Disrupt)[a-z]*able$`)
)

// activityIsOver are reasons of Progressing=True that mean the reverse, in Deployments and in the
// kinds that copy them, and in Argo Rollouts.
var activityIsOver = []string{"NewReplicaSetAvailable", "NewReplicationControllerAvailable", "AsExpected", "RolloutHealthy"}

// activityHasFailed are reasons of Progressing=False that mean that nothing more is tried.
var activityHasFailed = regexp.MustCompile(`(DeadlineExceeded|Aborted)$`)

// failureReasons are the reasons by which a goal that is not reached says that it will not be.
var failureReasons = regexp.MustCompile(`^(Error|Errored|Failed|ReconcileError|RevisionFailed|ContainerMissing|SecretSyncedError|ScaledObjectCheckFailed|NotSupported|Unsupported.*|Invalid.*|.*Already.*|` +
	`.*(Invalid|Denied|Rejected|Forbidden|Unauthorized|NotPermitted|NotAllowed))$`)

// atWorkReasons are the reasons by which a condition that is false says that it is not false for
// good.
var atWorkReasons = regexp.MustCompile(`^(Pending|Ongoing|InProgress|ReconcilePaused|Waiting.*|[A-Z][a-z]+ing)$`)

// outOfReach are the reasons by which a condition of the status Unknown says that what reports it
// does not any more.
var outOfReach = regexp.MustCompile(`(StatusUnknown|UpdateStopped|Unreachable|Lost)$`)

// crashText is what messages quote of a container that can't run: see crashReasons.
var crashText = regexp.MustCompile(`\b(` + strings.Join(crashReasons, "|") + `)\b`)

// byTrouble judges an object by the conditions that decide alone: of failures, and of activities.
func byTrouble(d *document) (Health, bool) {
	if c, ok := d.first(failures, "True"); ok && !c.stale {
		return c.says(StateFailed), true
	}
	if c, ok := d.condition("Progressing"); ok && c.status == "False" && !c.stale && activityHasFailed.MatchString(c.reason) {
		return c.says(StateFailed), true
	}
	if c, ok := d.condition("Running"); ok && c.status == "True" && c.reason == "Running" { // of Ansible operators
		return c.says(StateProgressing), true
	}
	for _, kind := range activities {
		c, ok := d.condition(kind)
		if ok && c.status == "True" && !(kind == "Progressing" && (d.saysReady() || slices.Contains(activityIsOver, c.reason))) {
			return c.says(StateProgressing), true
		}
	}
	if s, ok := byRequests(d); ok {
		return s, true
	}
	if ready, ok := d.condition("Ready"); ok && ready.status == "True" {
		return Health{}, false // it sums the others up
	}
	c, ok := d.least(func(c cond) bool {
		bad := c.status == "False" || c.status == "True" && likeFailure.MatchString(c.kind)
		return !c.stale && (c.status == "True" && isFailure.MatchString(c.kind) || c.status == "False" && (c.severity == "Error" || c.reason == "Error") || bad && crashText.MatchString(c.message))
	})
	if !ok {
		return Health{}, false
	}
	return c.says(StateFailed), true
}

// byGoals judges an object by the conditions that are to become true.
func byGoals(d *document) (Health, bool) {
	if ready, ok := d.condition("Ready"); ok {
		return ready.asGoal(d), true
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
	if c, ok := d.first(pauses, "True"); ok {
		return c.says(StateProgressing), true
	}
	if reached {
		return Health{State: StateReady}, true
	}
	if c, ok := d.least(func(c cond) bool { return c.status == "True" && likeFailure.MatchString(c.kind) && !c.stale }); ok {
		return c.says(StateFailed), true
	}
	c, ok := d.least(func(c cond) bool {
		return c.status == "Unknown" || c.status == "False" && (c.severity == "Warning" || likeGoal.MatchString(c.kind) && !noGoal.MatchString(c.kind) && !likeFailure.MatchString(c.kind))
	})
	return c.asGoal(d), ok
}

// byConditions judges what has no other status than conditions.
func byConditions(d *document) (Health, bool) {
	if s, ok := byTrouble(d); ok {
		return s, true
	}
	return byGoals(d)
}

// least returns the condition of the first type in the alphabet of those that are meant.
func (d *document) least(meant func(cond) bool) (cond, bool) {
	var found cond
	for _, c := range d.conditions {
		if meant(c) && (found.kind == "" || c.kind < found.kind) {
			found = c
		}
	}
	return found, found.kind != ""
}

// byRequests judges by conditions that say whether the spec could be used: Synced of Crossplane,
// Accepted of the Gateway API.
func byRequests(d *document) (Health, bool) {
	c, ok := d.first(requests, "False")
	if !ok || c.stale || atWorkReasons.MatchString(c.reason) {
		return Health{}, false
	}
	return c.says(StateFailed), true
}

// asGoal judges by one condition that is to become true.
func (c cond) asGoal(d *document) Health {
	switch {
	case c.stale:
		return Health{StateProgressing, ReasonNotObserved, "its controller has not seen the last change"}
	case c.status == "True" && strings.HasPrefix(c.kind, "Complete") && strings.HasSuffix(c.reason, "Failed"):
		return c.says(StateFailed) // it has ended, but badly
	case c.status == "True":
		return Health{State: StateReady}
	case c.status == "False" && c.isFinal(d):
		return c.says(StateFailed)
	case c.status == "Unknown" && outOfReach.MatchString(c.reason):
		return c.says(StateUnknown)
	}
	return c.says(StateProgressing)
}

// byTypes judges by the types of the conditions that are true, where these are the states of an
// object: Rebalancing of Strimzi's KafkaRebalance.
func byTypes(d *document) (Health, bool) {
	for _, state := range []State{StateFailed, StateTerminating, StateProgressing} {
		c, ok := d.least(func(c cond) bool { return c.status == "True" && meaningOf(c.kind) == state })
		if ok {
			return c.says(state), true
		}
	}
	return Health{}, false
}

// isFinal reports whether a goal that is false needs a change.
func (c cond) isFinal(d *document) bool {
	switch {
	case c.severity == "Error" || failureReasons.MatchString(c.reason):
		return true
	case c.kind == "Succeeded": // of Tekton and Knative: it ran, and failed
		return true
	case c.kind == "Available": // of OpenShift: a person has to act at once
		return strings.HasSuffix(d.gk.Group, ".openshift.io")
	}
	return false
}

func (c cond) says(s State) Health { return Health{s, c.reasonOr(c.kind), c.text()} }
