// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// readyWhenDone demands that an object reports success only when the work for it is done: users and
// pipelines act on it at once.
//
// A status claims success when the operator makes Ready, or Available where there is no Ready, True
// for the current generation (or for no generation that it names). The claim was made too early if
//
//   - right after it, and although no one else has changed anything since, and no user just before,
//     the operator creates a child of the object, changes one beyond its metadata and status, or
//     does something outside for it;
//   - a child that runs Pods was not available at the time of the claim, and becomes it before the
//     next checkpoint.
//
// A deletion of what is no longer wanted may come after the claim. Runs with faults are judged only
// if these refuse something and say so: with all others, the claim may be right by what the operator
// could know, and the work may be that of a process that has crashed.
type readyWhenDone struct {
	claims map[types.UID]*claim
	users  map[types.UID]time.Time // when users have changed an object
}

// claim is one of success.
type claim struct {
	condition string
	canonical string
	at        time.Time
	alone     bool               // there is no change that the operator could not know of
	waiting   map[types.UID]bool // children that are not available yet
}

func (o readyWhenDone) OnChange(l *ledger, c *change, v violate) {
	switch {
	case !l.honest:
	case !c.byOperator:
		o.others(c, v)
	case c.Subresource == "status" || c.isUpdate() && !changesWork(c):
		o.status(l, c)
	case c.New != nil && !c.isDeletion() && (c.Type == "ADDED" || changesWork(c)):
		for _, owner := range (&unstructured.Unstructured{Object: c.New}).GetOwnerReferences() {
			done := "changed"
			if c.Type == "ADDED" {
				done = "created"
			}
			o.work(l, owner.UID, fmt.Sprintf("its child %s was %s", c.canonical, done), v)
		}
	}
}

func (o readyWhenDone) OnCall(l *ledger, call external.Call, v violate) {
	if l.honest && call.Owner != "" && call.Verb != "delete" {
		o.work(l, call.Owner, fmt.Sprintf("the call %s was made for it", call), v)
	}
}

func (o readyWhenDone) WhenIdle(*ledger, Idle, violate) {
	clear(o.claims)
	clear(o.users)
}

// work looks at what the operator does for an object.
func (o readyWhenDone) work(l *ledger, owner types.UID, what string, v violate) {
	if made, ok := o.claims[owner]; ok && made.alone && time.Since(made.at) <= l.pace.Claim {
		v(fmt.Sprintf("%s reported %s=True before %s", made.canonical, made.condition, what))
		delete(o.claims, owner)
	}
}

// others looks at a change that the operator has not made.
func (o readyWhenDone) others(c *change, v violate) {
	if c.isUsers() {
		o.users[c.UID] = time.Now()
	}
	for _, owner := range slices.Sorted(maps.Keys(o.claims)) {
		made := o.claims[owner]
		made.alone = false
		if owner == c.UID {
			delete(o.claims, owner)
			continue
		}
		if made.waiting[c.UID] && c.New != nil && isAvailable(c.New, made.condition) {
			v(fmt.Sprintf("%s reported %s=True before its child %s was available", made.canonical, made.condition, c.canonical))
			delete(o.claims, owner)
		}
	}
}

// status looks at a status that the operator has written.
func (o readyWhenDone) status(l *ledger, c *change) {
	if c.New == nil || c.Old == nil {
		return
	}
	kind := claims(c.New)
	switch {
	case kind == "":
		delete(o.claims, c.UID)
	case claims(c.Old) != kind:
		o.claims[c.UID] = &claim{condition: kind, canonical: c.canonical, at: time.Now(), alone: o.knowsAll(c.UID, l.pace.Lag), waiting: l.unavailable(c.UID, kind)}
	}
}

// knowsAll reports whether the operator could know of all that users have changed beside an object.
func (o readyWhenDone) knowsAll(uid types.UID, lag time.Duration) bool {
	for changed, at := range o.users {
		if changed != uid && time.Since(at) <= lag {
			return false
		}
	}
	return true
}

// claims returns the condition by which an object claims success for its present generation, or "".
func claims(content map[string]any) string {
	u := unstructured.Unstructured{Object: content}
	if u.GetDeletionTimestamp() != nil {
		return ""
	}
	status := statusOf(content)
	conditions := conditionsOf(status)
	for _, kind := range []string{"Ready", "Available"} {
		condition, ok := conditions[kind]
		if !ok {
			continue
		}
		if condition["status"] != "True" {
			return "" // Available beside Ready=False is no success
		}
		observed, names := condition["observedGeneration"].(int64)
		if !names {
			observed, names = status["observedGeneration"].(int64)
		}
		if !names || observed == u.GetGeneration() {
			return kind
		}
	}
	return ""
}

// changesWork reports whether an update changes more than metadata and status.
func changesWork(c *change) bool {
	if c.Old == nil || c.New == nil {
		return false
	}
	for _, fields := range []map[string]any{c.Old, c.New} {
		for key := range fields {
			if key != "metadata" && key != "status" && !reflect.DeepEqual(c.Old[key], c.New[key]) {
				return true
			}
		}
	}
	return false
}

// unavailable returns the children of an object that run Pods and are not available.
func (l *ledger) unavailable(owner types.UID, condition string) map[types.UID]bool {
	list := map[types.UID]bool{}
	for uid, obj := range l.live {
		if obj.resource.Group != "apps" || obj.GetDeletionTimestamp() != nil || isAvailable(obj.Object, condition) || l.runsPods(uid, obj.Object) {
			continue
		}
		for _, r := range obj.GetOwnerReferences() {
			if r.UID == owner {
				list[uid] = true
			}
		}
	}
	return list
}

// runsPods reports whether the Pods of a ReplicaSet or StatefulSet are ready, although its status
// does not say so yet: an operator may count them itself, and see that sooner.
func (l *ledger) runsPods(uid types.UID, set map[string]any) bool {
	u := unstructured.Unstructured{Object: set}
	wanted, ok, _ := unstructured.NestedInt64(set, "spec", "replicas") //nolint:errcheck // what is no number is not there
	observed, _ := statusOf(set)["observedGeneration"].(int64)
	if !ok || observed < u.GetGeneration() {
		return false
	}
	revision, _ := statusOf(set)["updateRevision"].(string)
	ready := int64(0)
	for _, obj := range l.live {
		owner := metav1.GetControllerOf(obj)
		if owner == nil || owner.UID != uid || obj.resource.Resource != "pods" || obj.GetDeletionTimestamp() != nil {
			continue
		}
		if hash := obj.GetLabels()["controller-revision-hash"]; revision != "" && hash != revision {
			continue
		}
		if conditionsOf(statusOf(obj.Object))["Ready"]["status"] == "True" {
			ready++
		}
	}
	return ready >= wanted
}

// isAvailable reports whether a child runs its Pods. For Ready, these are all of the present
// generation; for Available, one is enough, as it is during a rollout.
func isAvailable(content map[string]any, condition string) bool {
	u := unstructured.Unstructured{Object: content}
	status := statusOf(content)
	wanted := int64(1)
	if n, ok, _ := unstructured.NestedInt64(content, "spec", "replicas"); ok { //nolint:errcheck // what is no number is not there
		wanted = n
	}
	if n, ok := status["desiredNumberScheduled"].(int64); ok {
		wanted = n
	}
	available, _ := status["availableReplicas"].(int64)
	if n, ok := status["numberAvailable"].(int64); ok {
		available = n
	}
	if condition == "Available" {
		return available > 0 || wanted == 0
	}
	observed, _ := status["observedGeneration"].(int64)
	return observed >= u.GetGeneration() && available >= wanted
}
