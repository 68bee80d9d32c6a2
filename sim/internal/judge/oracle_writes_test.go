// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

func foreignUntouchedChecks(*testing.T) map[string]check {
	of := func(annotations map[string]any, verb string, code int) func(trial) {
		return func(tr trial) {
			tr.created("other", object(map[string]any{"metadata": map[string]any{"annotations": annotations}}))
			tr.write(verb, code)
		}
	}
	foreign := map[string]any{cluster.Foreign: "true"}
	return map[string]check{
		"right: an object of its own":     {show: of(nil, "update", 200)},
		"right: a write that was refused": {show: of(foreign, "update", 409)},
		"right: a creation that can't be": {show: of(foreign, "create", 409)},
		"right: an object of the same name in another namespace": {show: func(tr trial) {
			tr.created("other", object(map[string]any{"metadata": map[string]any{"annotations": foreign, "namespace": "elsewhere"}}))
			tr.write("update", 200)
		}},
		"right: an object of the same name of another kind": {show: func(tr trial) {
			tr.created("other", object(map[string]any{"metadata": map[string]any{"annotations": foreign}}))
			r := &apiserver.Request{Verb: "update", Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: "default", Name: "x"}
			tr.BeforeWrite(r)
			tr.AfterWrite(r, &apiserver.Response{Code: 200})
		}},
		"right: once it is gone": {show: func(tr trial) {
			tr.created("other", object(map[string]any{"metadata": map[string]any{"annotations": foreign}}))
			tr.deleted("other", object(nil))
			tr.write("update", 200)
		}},
		"wrong: a patch after a refusal": {show: func(tr trial) {
			of(foreign, "update", 409)(tr)
			tr.write("patch", 200)
		}},
		"wrong: an update":                 {show: of(foreign, "update", 200)},
		"wrong: a deletion":                {show: of(foreign, "delete", 200)},
		"right: the next write, elsewhere": {show: func(tr trial) { tr.AfterWrite(&apiserver.Request{Verb: "update"}, &apiserver.Response{Code: 200}) }},
	}
}

func sameWorkChecks(*testing.T) map[string]check {
	reference := &Reference{created: map[string]int{"configmaps default/x": 1}, deleted: map[string]int{}}
	// named shows the creation of an object with a generated name, and of so many that are named after it.
	named := func(name string, times int) func(trial) {
		return func(tr trial) {
			widgets := schema.GroupVersionResource{Version: "v1", Resource: "widgets"}
			tr.Changed(apiserver.Change{
				Type: "ADDED", Actor: "other", Verb: "create", Resource: widgets, Namespace: "default", Name: name, UID: "0",
				New: object(map[string]any{"metadata": map[string]any{"name": name, "generateName": "pool-"}}),
			})
			for range times {
				tr.Changed(apiserver.Change{
					Type: "ADDED", Actor: "operator", Verb: "create", Resource: configMaps, Namespace: "default", Name: name + "-data", UID: "1",
					New: object(map[string]any{"metadata": map[string]any{"name": name + "-data"}}),
				})
			}
		}
	}
	afterGenerated := Options{Reference: &Reference{created: map[string]int{"configmaps default/pool-*-data": 1}}}
	twice := func(tr trial) {
		tr.created("operator", object(nil))
		tr.created("operator-2", object(nil))
	}
	orphan := object(map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "gone"}}}})
	return map[string]check{
		"right: as often as without the fault": {Options{Reference: reference}, func(tr trial) { tr.created("operator", object(nil)) }},
		"right: others do more": {Options{Reference: reference}, func(tr trial) {
			tr.created("user", object(nil))
			tr.created("user", object(nil))
			tr.deleted("user", object(nil))
		}},
		"right: named after an object with another generated name": {afterGenerated, named("pool-bbbbb", 1)},
		"wrong: twice named after an object with a generated name": {afterGenerated, named("pool-bbbbb", 2)},
		"right: the fault asks for more":                           {Options{Reference: reference, Plan: withFault(fault.Recreate)}, twice},
		"right: the run without faults":                            {Options{}, twice},
		"right: for an owner that is gone":                         {Options{Reference: &Reference{}}, func(tr trial) { tr.created("operator", orphan) }},
		"right: once for that, and once more": {Options{Reference: reference}, func(tr trial) {
			tr.created("operator", orphan)
			tr.created("operator", object(nil))
		}},
		"right: the garbage collector deletes": {Options{Reference: reference}, func(tr trial) { tr.deleted("server", object(nil)) }},
		"right: a deletion that only marks, once": {Options{Reference: &Reference{deleted: map[string]int{"configmaps default/x": 1}}}, func(tr trial) {
			tr.change("MODIFIED", "operator", "delete", object(nil), object(nil))
			tr.change("DELETED", "operator", "update", object(nil), nil)
		}},
		"right: during the proof that the operator is idle": {Options{Reference: reference, Without: withoutSilentWhenIdle}, func(tr trial) {
			tr.Prove("a resync")
			twice(tr)
		}},
		"wrong: created, without the fault never": {Options{Reference: &Reference{}}, func(tr trial) { tr.created("operator", object(nil)) }},
		"wrong: created again":                    {Options{Reference: reference, Plan: withFault(fault.CrashAfterWrite)}, twice},
		"wrong: deleted":                          {Options{Reference: reference}, func(tr trial) { tr.deleted("operator", object(nil)) }},
		"right: an object that is marked before it goes": {
			Options{Reference: &Reference{deleted: map[string]int{"configmaps default/x": 1}}}, func(tr trial) {
				marked := object(map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}})
				tr.change("MODIFIED", "operator", "delete", object(nil), marked)
				tr.deleted("operator", marked)
			},
		},
	}
}

// creating are the options of a run whose reference creates an object once.
func creating(object string) Options {
	return Options{
		Plan: withFault(fault.CrashAfterWrite), Without: map[oracle.Name]string{oracle.SameWork: "it is tested alone"},
		Reference: &Reference{Requests: 10, created: map[string]int{object: 1}},
	}
}

// creates shows that the operator creates an object so many times, which others delete.
func creates(tr trial, times int) {
	for range times {
		tr.created("operator", object(nil))
		tr.deleted("user", object(nil))
	}
}

func boundedRequestsChecks(t *testing.T) map[string]check {
	requests := func(n int, allowed bool) func(trial) {
		return func(tr trial) {
			for range n - 1 {
				tr.Request()
			}
			if tr.Request() != allowed {
				t.Errorf("request %d: allowed %t", n, !allowed)
			}
		}
	}
	return map[string]check{
		"right: few":                     {Options{}, requests(2000, true)},
		"right: with a reference":        {Options{Reference: &Reference{Requests: 10}}, requests(5200, true)},
		"right: the run was ended early": {Options{}, func(tr trial) { tr.Abort(); requests(2001, false)(tr) }},
		"right: more for more objects": {Options{}, func(tr trial) {
			tr.Prepared()
			for range 3 {
				tr.created("user", object(nil))
			}
			requests(2400, true)(tr)
		}},
		"wrong: many": {Options{}, requests(2001, false)},
		"right: an object that is created again and again without faults too": {creating("configmaps default/x"), func(tr trial) { creates(tr, 120) }},
		"wrong: an object that is created again and again":                    {creating("configmaps default/y"), func(tr trial) { creates(tr, 120) }},
		"wrong: Kubernetes Events count": {Options{}, func(tr trial) {
			for range 2000 {
				tr.Event(&apiserver.Request{})
			}
			requests(1, false)(tr)
		}},
		"wrong: with a reference": {Options{Reference: &Reference{Requests: 10}}, requests(5201, false)},
	}
}
