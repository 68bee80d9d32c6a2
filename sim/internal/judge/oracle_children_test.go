// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

var (
	volumeClaims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	replicaSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// child shows a change of an object named c with the UID 2, whose owner is the object with the UID
// 1 if owned is set.
func (tr trial) child(r schema.GroupVersionResource, kind, actor string, owned bool, fields map[string]any) {
	content := map[string]any{"metadata": map[string]any{"name": "c", "namespace": "default", "generation": int64(1)}}
	if owned {
		content["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"uid": "1"}}
	}
	for k, v := range fields {
		content[k] = v
	}
	c := apiserver.Change{Type: kind, Actor: actor, Verb: "create", Resource: r, Namespace: "default", Name: "c", UID: "2", New: content}
	if kind == "MODIFIED" {
		c.Verb, c.Old = "update", map[string]any{"metadata": content["metadata"]}
	}
	if kind == "DELETED" {
		c.Verb, c.Old, c.New = "delete", content, nil
	}
	tr.Changed(c)
}

func noOrphansChecks(*testing.T) map[string]check {
	life := func(actor string, owned bool, between func(trial)) func(trial) {
		return func(tr trial) {
			tr.Prepared()
			tr.created("user", object(nil))
			tr.child(volumeClaims, "ADDED", actor, owned, nil)
			tr.deleted("user", object(nil))
			if between != nil {
				between(tr)
			}
			tr.Idle(Idle{Checkpoint: 1})
		}
	}
	of := func(uid types.UID, name string) func(trial) {
		return func(tr trial) {
			tr.Changed(apiserver.Change{
				Type: "ADDED", Actor: "user", Verb: "create", Resource: configMaps, Namespace: "default", Name: name, UID: uid,
				New: map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}},
			})
		}
	}
	return map[string]check{
		"right: it goes, too": {show: life("operator", false, func(tr trial) { tr.child(volumeClaims, "DELETED", "operator", false, nil) })},
		"right: it is being deleted": {show: life("operator", false, func(tr trial) {
			tr.child(volumeClaims, "MODIFIED", "operator", false, map[string]any{"metadata": map[string]any{"name": "c", "namespace": "default", "deletionTimestamp": "2000-01-01T00:00:00Z"}})
		})},
		"right: the workload keeps the kind":   {options: Options{Rules: Rules{Keeps: map[string]string{"persistentvolumeclaims": "data"}}}, show: life("operator", false, nil)},
		"right: another client has created it": {show: life("other", false, nil)},
		"right: a user has created it":         {show: life("user", false, nil)},
		"right: the object is there again":     {show: life("operator", false, of("9", "x"))},
		"right: the object is still there": {show: func(tr trial) {
			tr.Prepared()
			tr.created("user", object(nil))
			tr.child(volumeClaims, "ADDED", "operator", false, nil)
			tr.Idle(Idle{Checkpoint: 1})
		}},
		"right: the object is lost in spite of its finalizer": {options: Options{Plan: withFault(fault.Vanish)}, show: life("operator", false, nil)},
		"right: an owner is there": {show: func(tr trial) {
			tr.Prepared()
			tr.created("user", object(nil)) // has the UID 1
			of("9", "y")(tr)
			tr.child(volumeClaims, "ADDED", "operator", true, nil)
			tr.Idle(Idle{Checkpoint: 1})
		}},
		"right: it serves another object": {show: func(tr trial) {
			tr.Prepared()
			of("9", "y")(tr)
			tr.created("user", object(nil))
			tr.child(volumeClaims, "ADDED", "operator", false, nil)
			tr.deleted("user", object(nil))
			tr.Idle(Idle{Checkpoint: 1})
		}},
		"right: it was created at the start": {show: func(tr trial) {
			tr.child(volumeClaims, "ADDED", "operator", false, nil)
			tr.Prepared()
			tr.created("user", object(nil))
			tr.deleted("user", object(nil))
			tr.Idle(Idle{Checkpoint: 1})
		}},
		"right: for an object from the beginning, to which the operator writes": {show: func(tr trial) {
			of("9", "y")(tr)
			tr.Prepared()
			tr.Changed(apiserver.Change{
				Type: "MODIFIED", Actor: "operator", Verb: "update", Resource: configMaps, Namespace: "default", Name: "y", UID: "9",
				Old: map[string]any{}, New: map[string]any{"metadata": map[string]any{"name": "y", "namespace": "default"}},
			})
			tr.created("user", object(nil))
			tr.child(volumeClaims, "ADDED", "operator", false, nil)
			tr.deleted("user", object(nil))
			tr.Idle(Idle{Checkpoint: 1})
		}},
		"wrong: it stays": {show: life("operator", false, nil)},
		"wrong: its owners are gone, and something else from the beginning is there": {show: func(tr trial) {
			of("9", "y")(tr)
			life("operator", false, nil)(tr)
		}},
	}
}

func noLateFinalizerChecks(*testing.T) map[string]check {
	show := func(deleted string, code, tries int) func(trial) {
		return func(tr trial) {
			tr.created("user", object(map[string]any{"metadata": map[string]any{"deletionTimestamp": deleted}}))
			for range tries {
				r := &apiserver.Request{Verb: "update", Resource: configMaps, Namespace: "default", Name: "x", Actor: "operator"}
				tr.BeforeWrite(r)
				tr.AfterWrite(r, &apiserver.Response{Code: code, Body: []byte(`{"message":"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers"}`)})
			}
		}
	}
	const longAgo = "2000-01-01T00:00:00Z"
	return map[string]check{
		"right: once, from a stale cache":       {show: show(longAgo, 422, 1)},
		"right: while the cache may be stale":   {show: show(time.Now().UTC().Format(time.RFC3339), 422, 3)},
		"right: another answer":                 {show: show(longAgo, 409, 3)},
		"wrong: again, long after the deletion": {show: show(longAgo, 422, 2)},
	}
}

// replicaSet shows a ReplicaSet of one Pod.
func replicaSet(tr trial, kind, actor string, available int64) {
	tr.child(replicaSets, kind, actor, true, map[string]any{
		"spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{"availableReplicas": available, "observedGeneration": int64(1)},
	})
}

// readyPod shows a Pod that is ready, of the controller with a UID.
func readyPod(tr trial, controller string) {
	tr.Changed(apiserver.Change{
		Type: "ADDED", Actor: "other", Verb: "create", Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "default", Name: "p", UID: "4",
		New: map[string]any{
			"metadata": map[string]any{"name": "p", "namespace": "default", "ownerReferences": []any{map[string]any{"uid": controller, "controller": true}}},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		},
	})
}

func readyWhenDoneChecks(*testing.T) map[string]check {
	ready := func(tr trial, s string, generation int64) {
		before, after := object(nil), status(generation, condition("Ready", s))
		before["metadata"].(map[string]any)["generation"], after["metadata"].(map[string]any)["generation"] = int64(2), int64(2)
		tr.created("user", before)
		tr.change("MODIFIED", "operator", "update", before, after)
	}
	creates := func(tr trial) { tr.child(configMaps, "ADDED", "operator", true, nil) }
	show := func(s string, generation int64, then ...func(trial)) func(trial) {
		return func(tr trial) {
			ready(tr, s, generation)
			for _, do := range then {
				do(tr)
			}
		}
	}
	deployment := func(kind, actor string, available int64) func(trial) {
		return func(tr trial) {
			tr.child(deployments, kind, actor, true, map[string]any{"status": map[string]any{"availableReplicas": available, "observedGeneration": int64(1)}})
		}
	}
	return map[string]check{
		"right: the child was there before":                           {show: func(tr trial) { creates(tr); ready(tr, "True", 2) }},
		"right: not ready":                                            {show: show("False", 2, creates)},
		"right: ready for an older generation, which is not this one": {show: show("True", 1, creates)},
		"right: a child of another object":                            {show: show("True", 2, func(tr trial) { tr.child(configMaps, "ADDED", "operator", false, nil) })},
		"right: after a change of another client": {show: show("True", 2, func(tr trial) {
			tr.child(volumeClaims, "ADDED", "user", false, nil)
			tr.child(configMaps, "ADDED", "operator", true, nil)
		})},
		"right: just after a user's change of another object": {show: func(tr trial) {
			tr.child(volumeClaims, "ADDED", "user", false, nil)
			ready(tr, "True", 2)
			creates(tr)
		}},
		"wrong: long after such a change": {show: func(tr trial) {
			tr.child(volumeClaims, "ADDED", "user", false, nil)
			agedUsers(tr, time.Minute)
			ready(tr, "True", 2)
			creates(tr)
		}},
		"right: in the next stage": {show: show("True", 2, func(tr trial) { tr.Idle(Idle{Checkpoint: 1}) }, creates)},
		"right: by the clock":      {show: show("True", 2, func(tr trial) { agedClaims(tr, time.Minute) }, creates)},
		"right: only labels change": {show: func(tr trial) {
			creates(tr)
			ready(tr, "True", 2)
			tr.child(configMaps, "MODIFIED", "operator", true, nil)
		}},
		"right: what is no longer wanted goes": {show: show("True", 2, func(tr trial) { tr.child(configMaps, "DELETED", "operator", true, nil) })},
		"right: it takes the claim back before": {show: show("True", 2, func(tr trial) {
			before, after := status(2, condition("Ready", "True")), status(2, condition("Ready", "False"))
			updates("operator", before, after)(tr)
		}, creates)},
		"right: the late call of a process that has crashed": {
			options: Options{Plan: withFault(fault.CrashInsideCall), Without: map[oracle.Name]string{oracle.FinalizerFirst: "it is tested alone"}},
			show: show("True", 2, func(tr trial) {
				tr.BeforeCall(external.Call{System: "buckets", Verb: "create", What: "b", Owner: "1", Mutates: true})
			}),
		},
		"wrong: although a call has failed": {options: Options{Plan: withFault(fault.FailCall)}, show: show("True", 2, creates)},
		"right: by a stale cache":           {options: Options{Plan: withFault(fault.DelayWatch)}, show: show("True", 2, creates)},
		"right: the Deployment was available before": {show: func(tr trial) {
			deployment("ADDED", "operator", 1)(tr)
			ready(tr, "True", 2)
			deployment("MODIFIED", "other", 1)(tr)
		}},
		"right: the Pods of the ReplicaSet were ready before": {show: func(tr trial) {
			replicaSet(tr, "ADDED", "operator", 0)
			readyPod(tr, "2")
			ready(tr, "True", 2)
			replicaSet(tr, "MODIFIED", "other", 1)
		}},
		"wrong: the Pod of another ReplicaSet was ready before": {show: func(tr trial) {
			replicaSet(tr, "ADDED", "operator", 0)
			readyPod(tr, "3")
			ready(tr, "True", 2)
			replicaSet(tr, "MODIFIED", "other", 1)
		}},
		"right: no one makes the Deployment available": {show: func(tr trial) {
			deployment("ADDED", "operator", 0)(tr)
			ready(tr, "True", 2)
			tr.Idle(Idle{Checkpoint: 1})
		}},
		"wrong: the child is created afterwards": {show: show("True", 2, creates)},
		"wrong: the child is changed afterwards": {show: func(tr trial) {
			creates(tr)
			ready(tr, "True", 2)
			tr.child(configMaps, "MODIFIED", "operator", true, map[string]any{"data": map[string]any{"a": "b"}})
		}},
		"wrong: the call is made afterwards": {show: show("True", 2, func(tr trial) {
			tr.BeforeCall(external.Call{System: "buckets", Verb: "create", What: "b", Owner: "1", Mutates: true})
		}), options: Options{Without: map[oracle.Name]string{oracle.FinalizerFirst: "it is tested alone"}}},
		"wrong: the Deployment becomes available afterwards": {show: func(tr trial) {
			deployment("ADDED", "operator", 0)(tr)
			ready(tr, "True", 2)
			deployment("MODIFIED", "other", 1)(tr)
		}},
	}
}

// agedUsers makes all changes of users older.
func agedUsers(tr trial, d time.Duration) {
	for _, r := range tr.oracles {
		if o, ok := r.oracle.(readyWhenDone); ok {
			for uid, at := range o.users {
				o.users[uid] = at.Add(-d)
			}
		}
	}
}

// agedClaims makes all claims older.
func agedClaims(tr trial, d time.Duration) {
	for _, r := range tr.oracles {
		if o, ok := r.oracle.(readyWhenDone); ok {
			for _, c := range o.claims {
				c.at = c.at.Add(-d)
			}
		}
	}
}
