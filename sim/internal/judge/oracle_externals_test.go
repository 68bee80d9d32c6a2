// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

func finalizerFirstChecks(*testing.T) map[string]check {
	call := external.Call{System: "buckets", Verb: "create", What: "b", Owner: "1", Mutates: true}
	callFor := func(finalizers []any, then ...func(trial)) func(trial) {
		return func(tr trial) {
			obj := object(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
			tr.created("user", obj)
			for _, do := range then {
				do(tr)
			}
			tr.BeforeCall(call)
		}
	}
	gone := func(tr trial) { tr.deleted("user", object(nil)) }
	return map[string]check{
		"right: with a finalizer":       {show: callFor([]any{"f"})},
		"right: without an object":      {show: func(tr trial) { tr.BeforeCall(call) }},
		"right: others took the object": {show: callFor(nil, func(tr trial) { tr.Disturbed("1") }, gone)},
		"right: a deletion": {show: func(tr trial) {
			tr.created("user", object(nil))
			tr.BeforeCall(external.Call{System: "buckets", Verb: "delete", Owner: "1", Mutates: true})
		}},
		"right: an effect of no object": {show: func(tr trial) {
			tr.created("user", object(nil))
			tr.BeforeCall(external.Call{System: "buckets", Verb: "create", Mutates: true})
		}},
		"right: the finalizer that was added before": {show: callFor(nil, func(tr trial) {
			tr.updated("operator", object(nil), object(map[string]any{"metadata": map[string]any{"finalizers": []any{"f"}}}))
		})},
		"wrong: the finalizer was taken off before": {show: callFor([]any{"f"}, func(tr trial) {
			tr.updated("operator", object(map[string]any{"metadata": map[string]any{"finalizers": []any{"f"}}}), object(nil))
		})},
		"wrong: without a finalizer": {show: callFor(nil)},
		"wrong: after the object":    {show: callFor([]any{"f"}, gone)},
	}
}

func oneExternalChecks(*testing.T) map[string]check {
	call := func(tr trial) {
		tr.created("user", object(nil))
		tr.AfterCall(external.Call{System: "buckets", Verb: "create", Owner: "1", Mutates: true})
	}
	two := &Reference{externals: map[string]int{"buckets configmaps default/x": 2}}
	return map[string]check{
		"right: one":                     {Options{Reference: &Reference{}, Systems: buckets(1)}, call},
		"right: two without a fault too": {Options{Reference: two, Systems: buckets(2)}, call},
		"right: two for two objects":     {Options{Reference: &Reference{}, Systems: buckets(2), Plan: withFault(fault.Recreate)}, call},
		"right: the run without faults":  {Options{Systems: buckets(2)}, call},
		"right: for no object of the cluster": {Options{Reference: &Reference{}, Systems: buckets(2)}, func(tr trial) {
			tr.AfterCall(external.Call{System: "buckets", Verb: "create", Mutates: true})
		}},
		"right: a system that the judge does not know":   {Options{Reference: &Reference{}}, call},
		"wrong: three, where two are right":              {Options{Reference: two, Systems: buckets(3)}, call},
		"wrong: two, with a fault that makes none right": {Options{Reference: &Reference{}, Systems: buckets(2), Plan: withFault(fault.LoseCallAnswer)}, call},
		"wrong: two": {Options{Reference: &Reference{}, Systems: buckets(2)}, call},
	}
}

func noLeakChecks(*testing.T) map[string]check {
	gone := func(tr trial) { tr.deleted("operator", object(nil)) }
	disturbed := func(tr trial) { tr.Disturbed("1"); gone(tr) }
	left := buckets(1, external.Resource{ID: "b", Owner: "1"})
	return map[string]check{
		"right: nothing is left":                         {Options{Systems: buckets(1)}, gone},
		"right: one of another object":                   {Options{Systems: buckets(1, external.Resource{ID: "b", Owner: "2"})}, gone},
		"right: the object is there":                     {Options{Systems: left}, func(tr trial) { tr.created("user", object(nil)) }},
		"right: the finalizer could not hold the object": {Options{Systems: left, Plan: withFault(fault.Vanish)}, disturbed},
		"right: one without an owner":                    {Options{Systems: buckets(0, external.Resource{ID: "b"})}, gone},
		"wrong: the vanished object was another one":     {Options{Systems: left, Plan: withFault(fault.Vanish)}, gone},
		"wrong: one is left":                             {Options{Systems: left}, gone},
		"wrong: after others deleted the object":         {Options{Systems: left, Plan: withFault(fault.Recreate)}, disturbed},
	}
}
