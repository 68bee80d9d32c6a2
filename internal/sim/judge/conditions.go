// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// statusesOf returns the status of an object before and after a change of the operator. It reports
// false when there was none before. A status that the operator removes as a whole is an empty one.
func statusesOf(c *change) (before, after map[string]any, ok bool) {
	if !c.isUpdate() {
		return nil, nil, false
	}
	before, after = statusOf(c.Old), statusOf(c.New)
	return before, after, before != nil
}

func statusOf(content map[string]any) map[string]any {
	status, _ := content["status"].(map[string]any)
	return status
}

// conditionsOf returns the conditions of a status by type.
func conditionsOf(status map[string]any) map[string]map[string]any {
	conditions := map[string]map[string]any{}
	list, _ := status["conditions"].([]any)
	for _, element := range list {
		if m, ok := element.(map[string]any); ok {
			if kind, ok := m["type"].(string); ok {
				conditions[kind] = m
			}
		}
	}
	return conditions
}

// eachCondition calls a function for each condition that there was before a change, ordered by
// type. now is nil when the condition is gone.
func eachCondition(c *change, do func(kind string, old, now map[string]any)) {
	before, after, ok := statusesOf(c)
	if !ok {
		return
	}
	was, is := conditionsOf(before), conditionsOf(after)
	for _, kind := range slices.Sorted(maps.Keys(was)) {
		do(kind, was[kind], is[kind])
	}
}

// observedGeneration demands that status.observedGeneration does not fall, nor that of a condition.
//
// Generations are those of one object, by its UID. One that is created again begins anew, and may
// begin with what was observed of a former object of its name: because a user has restored it with
// its status, or because a status arrives late. To correct that is no fall.
type observedGeneration struct {
	former    map[string]int64 // the highest generation of those that are gone, by name
	inherited map[observation]bool
}

// observation is an observed generation: that of a status, or of a condition of it.
type observation struct {
	uid       types.UID
	condition string // its type; "" for the status
}

func (o observedGeneration) OnChange(l *ledger, c *change, v violate) {
	if before, after, ok := statusesOf(c); ok {
		old, now, fell := falls(before, after)
		if fell && !l.wiped[c.UID] && !o.inherited[observation{c.UID, ""}] {
			v(fmt.Sprintf("%s: status.observedGeneration fell from %d to %d", c.canonical, old, now))
		}
	}
	eachCondition(c, func(kind string, was, is map[string]any) {
		if is == nil {
			return
		}
		if old, now, fell := falls(was, is); fell && !o.inherited[observation{c.UID, kind}] {
			v(fmt.Sprintf("%s: observedGeneration of condition %s fell from %d to %d", c.canonical, kind, old, now))
		}
	})
	o.note(c)
}

// note records which observed generations are those of a former object.
func (o observedGeneration) note(c *change) {
	if c.New == nil {
		generation := (&unstructured.Unstructured{Object: c.Old}).GetGeneration()
		o.former[c.canonical] = max(o.former[c.canonical], generation)
		return
	}
	generation := (&unstructured.Unstructured{Object: c.New}).GetGeneration()
	note := func(kind string, was, is map[string]any) {
		now, ok := is["observedGeneration"].(int64)
		if ok && now != was["observedGeneration"] {
			restored := c.Type == "ADDED" && !c.byOperator
			o.inherited[observation{c.UID, kind}] = restored || now > generation && now <= o.former[c.canonical]
		}
	}
	before, after := statusOf(c.Old), statusOf(c.New)
	note("", before, after)
	was := conditionsOf(before)
	for kind, is := range conditionsOf(after) {
		note(kind, was[kind], is)
	}
}

// falls compares two observed generations. One that vanishes falls to 0.
func falls(before, after map[string]any) (old, now int64, fell bool) {
	old, ok := before["observedGeneration"].(int64)
	if !ok {
		return 0, 0, false
	}
	now, _ = after["observedGeneration"].(int64)
	return old, now, now < old
}

// conditionsStay demands that types of conditions do not vanish: a client that waits for one
// takes its absence for a status that was not written yet. A condition that another client has set
// on the object is that client's.
type conditionsStay struct {
	others map[types.UID]map[string]bool // conditions that the operator has not set
}

func (o conditionsStay) OnChange(l *ledger, c *change, v violate) {
	o.noteAuthors(c)
	eachCondition(c, func(kind string, _, now map[string]any) {
		if now == nil && !comesAndGoes(kind) && !l.rules.ComesAndGoes[kind] && !o.others[c.UID][kind] {
			v(fmt.Sprintf("%s: condition %s has vanished", c.canonical, kind))
		}
	})
}

// noteAuthors records whether others have set the conditions of an object as the last.
func (o conditionsStay) noteAuthors(c *change) {
	before := conditionsOf(statusOf(c.Old))
	for kind, now := range conditionsOf(statusOf(c.New)) {
		if reflect.DeepEqual(before[kind], now) {
			continue
		}
		if o.others[c.UID] == nil {
			o.others[c.UID] = map[string]bool{}
		}
		o.others[c.UID][kind] = !c.byOperator
	}
}

// comesAndGoes reports whether a condition is there only while something is out of the ordinary, as
// kstatus has it, or while something fails: Deployments and ReplicaSets remove ReplicaFailure when
// it is over.
func comesAndGoes(kind string) bool {
	return kind == "Reconciling" || kind == "Stalled" || kind == "Paused" || strings.HasSuffix(kind, "Failure") || strings.HasSuffix(kind, "Error")
}

// transitionTime demands that lastTransitionTime moves with the status of its condition, and only
// then.
type transitionTime struct{}

// transitionDelay is how old, in virtual time, the time of a transition may be when it is written:
// several transitions within it may have the same time. An operator may also take the time at which
// its reconcile began, which is why this is not judged when a fault makes one take long.
const transitionDelay = 30 * time.Second

func (transitionTime) OnChange(l *ledger, c *change, v violate) {
	eachCondition(c, func(kind string, old, now map[string]any) {
		if now == nil {
			return
		}
		moved := old["lastTransitionTime"] != now["lastTransitionTime"]
		switch same := old["status"] == now["status"]; {
		case same && moved:
			v(fmt.Sprintf("%s: lastTransitionTime of condition %s moved, its status stayed %v", c.canonical, kind, now["status"]))
		case !same && !moved && l.honest && isPast(now["lastTransitionTime"]):
			v(fmt.Sprintf("%s: lastTransitionTime of condition %s stayed, its status moved from %v to %v", c.canonical, kind, old["status"], now["status"]))
		}
	})
}

// isPast reports whether something is a time that is over for good.
func isPast(value any) bool {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && time.Since(at) > transitionDelay
}

// stuck is a cause for which objects can't continue.
type stuck struct {
	cause   string // "the object secrets default/x is missing"
	blocked []external.Blocked
}

// saysWhy demands of objects that can't continue that a condition says so. Objects that have no
// conditions without a fault either are left out, and so are deletions that only the finalizers of
// others hold.
type saysWhy struct{}

func (saysWhy) OnStuck(l *ledger, s stuck, v violate) {
	if l.reference == nil {
		return
	}
	silent := func(uid types.UID) bool {
		obj, live := l.live[uid]
		return live && l.reference.conditions[l.uids[uid]] && !hasExplanation(obj.Object)
	}
	for _, uid := range slices.Sorted(maps.Keys(l.live)) {
		if l.live[uid].GetDeletionTimestamp() != nil && l.holds(uid) && silent(uid) {
			v(fmt.Sprintf("%s, %s can't be deleted, and no condition of it says so", s.cause, l.uids[uid]))
		}
	}
	for _, blocked := range s.blocked {
		for _, uid := range blocked.Owners {
			if silent(uid) {
				v(fmt.Sprintf("%s does not answer, %s can't continue, and no condition of it says so", blocked.System, l.uids[uid]))
			}
		}
	}
}

// holds reports whether the operator may be what holds an object that is being deleted.
func (l *ledger) holds(uid types.UID) bool {
	finalizers := l.live[uid].GetFinalizers()
	return len(finalizers) == 0 || slices.ContainsFunc(finalizers, func(f string) bool { return l.held[uid][f] })
}

// isFailure reports whether a difference is a condition that reports a failure in a world.
func isFailure(world snapshot.Snapshot, d oracle.Difference) bool {
	kind, ok := conditionOf(d)
	return ok && failures.MatchString(kind) && world[d.Thing][conditionsPath+kind+"].status"] == "True"
}

// hasExplanation reports whether the status of an object says that something is not as it should
// be: by a condition with a reason, or by a phase.
func hasExplanation(content map[string]any) bool {
	return hasBadCondition(content) || hasBadPhase(content)
}

func hasBadCondition(content map[string]any) bool {
	for kind, c := range conditionsOf(statusOf(content)) {
		if isBad(kind, c) {
			return true
		}
	}
	return false
}

// isBad reports whether a condition says that something is not as it should be, and why.
func isBad(kind string, condition map[string]any) bool {
	bad := condition["status"] != "True"
	if badNews.MatchString(kind) {
		bad = condition["status"] != "False" || kind == "Progressing"
	}
	reason, _ := condition["reason"].(string)
	return bad && reason != ""
}

func hasBadPhase(content map[string]any) bool {
	phase, _ := statusOf(content)["phase"].(string)
	return badPhase.MatchString(phase)
}

var (
	// badNews matches conditions that say that something is not as it should be when they are True.
	badNews = regexp.MustCompile(`^(Stalled|Reconciling|Progressing|Terminating|Deleting|Deletion.*|Finalizing|Blocked|Paused|Suspended|InUse|.*(Degraded|Fail(ed|ure|ing)|Errors?|Pressure|Unavailable|Conflict))$`)

	// failures are those among them that an operator which is idle does not leave without a cause.
	failures = regexp.MustCompile(`^(Stalled|Blocked|.*(Degraded|Fail(ed|ure|ing)|Errors?|Conflict))$`)

	badPhase = regexp.MustCompile(`(?i)^(terminating|deleting|finalizing|pending|waiting|blocked|failed|error|degraded|unknown)$`)
)
