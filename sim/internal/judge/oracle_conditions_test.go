// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

// condition is one of a status, with more fields as pairs of a key and a value.
func condition(kind, status string, more ...any) map[string]any {
	c := map[string]any{"type": kind, "status": status}
	for i := 0; i < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return c
}

// status is the content of an object with a status.
func status(observed int64, conditions ...any) map[string]any {
	return object(map[string]any{"status": map[string]any{"observedGeneration": observed, "conditions": conditions}})
}

func updates(actor string, before, after map[string]any) func(trial) {
	return func(tr trial) { tr.updated(actor, before, after) }
}

func observedGenerationChecks(*testing.T) map[string]check {
	older, newer := condition("Ready", "True", "observedGeneration", int64(1)), condition("Ready", "True", "observedGeneration", int64(2))
	return map[string]check{
		"right: it rises":        {show: updates("operator", status(1, older), status(2, newer))},
		"right: others write it": {show: updates("user", status(2), status(1))},
		"right: others wiped it": {show: func(tr trial) { tr.StatusWiped("1"); updates("operator", status(2), status(1))(tr) }},
		"right: it is new":       {show: updates("operator", object(nil), status(1))},
		"right: a conflict, and the next try from the newer status": {show: func(tr trial) {
			tr.write("update", 409)
			updates("operator", status(2, newer), status(2, newer))(tr)
		}},
		"right: a condition that had none gets one":               {show: updates("operator", status(2, condition("Ready", "True")), status(2, older))},
		"right: the object is deleted":                            {show: func(tr trial) { tr.deleted("operator", status(2, newer)) }},
		"wrong: it vanishes":                                      {show: updates("operator", status(2), object(map[string]any{"status": map[string]any{}}))},
		"wrong: the whole status is removed":                      {show: updates("operator", status(2), object(nil))},
		"wrong: that of a condition vanishes":                     {show: updates("operator", status(2, newer), status(2, condition("Ready", "True")))},
		"wrong: of a condition, although others wiped the status": {show: func(tr trial) { tr.StatusWiped("1"); updates("operator", status(2, newer), status(2, older))(tr) }},
		"wrong: it falls":                                         {show: updates("operator", status(2), status(1))},
		"wrong: that of a condition falls":                        {show: updates("operator", status(2, newer), status(2, older))},
	}
}

func conditionsStayChecks(*testing.T) map[string]check {
	return map[string]check{
		"right: it stays":               {show: updates("operator", status(1, condition("Ready", "True")), status(1, condition("Ready", "False")))},
		"right: others remove it":       {show: updates("user", status(1, condition("Ready", "True")), status(1))},
		"right: a condition that comes": {show: updates("operator", status(1, condition("Stalled", "True")), status(1))},
		"right: Reconciling comes and goes": {show: func(tr trial) {
			ready, reconciling := condition("Ready", "True"), condition("Reconciling", "True")
			updates("operator", status(1, ready), status(1, ready, reconciling))(tr)
			updates("operator", status(1, ready, reconciling), status(1, ready))(tr)
		}},
		"right: a failure is over":                    {show: updates("operator", status(1, condition("ReplicaFailure", "True")), status(1))},
		"wrong: that it has failed, which is the end": {show: updates("operator", status(1, condition("Failed", "True")), status(1))},
		"right: Paused goes":                          {show: updates("operator", status(1, condition("Paused", "True")), status(1))},
		"right: it is declared to": {
			options: Options{Rules: Rules{ComesAndGoes: map[string]bool{"PodScheduled": true}}},
			show:    updates("operator", status(1, condition("PodScheduled", "True")), status(1)),
		},
		"right: it is another client's": {show: func(tr trial) {
			updates("other", status(1), status(1, condition("Ready", "True")))(tr)
			updates("operator", status(1, condition("Ready", "True")), status(1))(tr)
		}},
		"right: the object goes with it": {show: func(tr trial) {
			tr.deleted("operator", status(1, condition("Ready", "True")))
		}},
		"right: others recreate the object": {show: func(tr trial) {
			tr.deleted("user", status(1, condition("Ready", "True")))
			tr.created("user", object(nil))
			updates("operator", object(nil), status(1, condition("Synced", "True")))(tr)
		}},
		"wrong: the whole status is removed": {show: updates("operator", object(map[string]any{"status": map[string]any{"conditions": []any{condition("Ready", "True")}}}), object(nil))},
		"wrong: the operator had set it again": {show: func(tr trial) {
			updates("other", status(1), status(1, condition("Ready", "True")))(tr)
			updates("operator", status(1, condition("Ready", "True")), status(1, condition("Ready", "False")))(tr)
			updates("operator", status(1, condition("Ready", "False")), status(1))(tr)
		}},
		"wrong: another one comes in its place": {show: updates("operator", status(1, condition("Ready", "True")), status(1, condition("Available", "True")))},
		"wrong: each that vanishes, by name":    {show: updates("operator", status(1, condition("Ready", "True"), condition("Bound", "True")), status(1))},
		"wrong: it vanishes":                    {show: updates("operator", status(1, condition("Ready", "True")), status(1))},
	}
}

func transitionTimeChecks(*testing.T) map[string]check {
	at := func(status, time string) map[string]any {
		return condition("Ready", status, "lastTransitionTime", time)
	}
	return map[string]check{
		"right: both stay":                        {show: updates("operator", status(1, at("True", "1")), status(2, at("True", "1")))},
		"right: both move":                        {show: updates("operator", status(1, at("True", "1")), status(1, at("False", "2")))},
		"right: the status moves within a second": {show: updates("operator", status(1, at("True", "1")), status(1, at("False", "1")))},
		"right: reason and message move":          {show: updates("operator", status(1, at("True", "1")), status(1, condition("Ready", "True", "lastTransitionTime", "1", "reason", "New")))},
		"right: others move it":                   {show: updates("user", status(1, at("True", "1")), status(1, at("True", "2")))},
		"right: it goes and comes": {show: func(tr trial) {
			stalled := condition("Stalled", "True", "lastTransitionTime", "1")
			updates("operator", status(1, stalled), status(1))(tr)
			updates("operator", status(1), status(1, condition("Stalled", "True", "lastTransitionTime", "2")))(tr)
		}},
		"right: the status moves a moment after the time": {show: updates("operator", status(1, at("True", time.Now().Format(time.RFC3339))), status(1, at("False", time.Now().Format(time.RFC3339))))},
		"right: conditions without times":                 {show: updates("operator", status(1, condition("Ready", "True")), status(1, condition("Ready", "False")))},
		"right: the time at which a reconcile began that a fault made long": {
			options: Options{Plan: withFault(fault.HangCall)},
			show:    updates("operator", status(1, at("True", "2000-01-01T00:00:00Z")), status(1, at("False", "2000-01-01T00:00:00Z"))),
		},
		"wrong: only the status moves":  {show: updates("operator", status(1, at("True", "2000-01-01T00:00:00Z")), status(1, at("False", "2000-01-01T00:00:00Z")))},
		"wrong: the time is taken away": {show: updates("operator", status(1, at("True", "1")), status(1, condition("Ready", "True")))},
		"wrong: only the time moves":    {show: updates("operator", status(1, at("True", "1")), status(1, at("True", "2")))},
	}
}

func saysWhyChecks(*testing.T) map[string]check {
	options := Options{Reference: &Reference{conditions: map[string]bool{"configmaps default/x": true}}}
	blocked := []external.Blocked{{System: "buckets", Owners: []types.UID{"1"}}}
	show := func(deleted bool, blocked []external.Blocked, conditions ...any) func(trial) {
		return func(tr trial) {
			obj := status(1, conditions...)
			if deleted {
				obj["metadata"].(map[string]any)["deletionTimestamp"] = "2000-01-01T00:00:00Z"
			}
			tr.created("user", obj)
			tr.Stuck("the Secret is missing", blocked)
		}
	}
	silent, says := condition("Ready", "True", "reason", "AllGood"), condition("Ready", "False", "reason", "NoSecret")
	return map[string]check{
		"right: nothing waits":                                               {options, show(false, nil, silent)},
		"right: a condition is false":                                        {options, show(true, blocked, says)},
		"right: a condition says that it hangs":                              {options, show(true, nil, silent, condition("Stalled", "True", "reason", "NoSecret"))},
		"right: objects without conditions":                                  {Options{Reference: &Reference{}}, show(true, blocked)},
		"right: it is reconciling, and says why":                             {options, show(true, nil, condition("Reconciling", "True", "reason", "Waiting"))},
		"right: it makes no progress":                                        {options, show(true, nil, condition("Progressing", "False", "reason", "Waiting"))},
		"right: the run without faults":                                      {Options{}, show(true, blocked, silent)},
		"right: a failure that is one when it is True":                       {options, show(true, blocked, silent, condition("ReconcileFailed", "True", "reason", "NoSecret"))},
		"right: kubebuilder's Degraded, which is Unknown while it cleans up": {options, show(true, nil, silent, condition("Degraded", "Unknown", "reason", "Finalizing"))},
		"right: a phase says so": {options, func(tr trial) {
			obj := object(map[string]any{"status": map[string]any{"phase": "Terminating"}, "metadata": map[string]any{"deletionTimestamp": "2000-01-01T00:00:00Z"}})
			tr.created("user", obj)
			tr.Stuck("the Secret is missing", nil)
		}},
		"right: the finalizer of another client holds it": {options, func(tr trial) {
			obj := status(1, silent)
			obj["metadata"].(map[string]any)["deletionTimestamp"] = "2000-01-01T00:00:00Z"
			obj["metadata"].(map[string]any)["finalizers"] = []any{"example.com/other"}
			tr.created("user", obj)
			tr.Stuck("the Secret is missing", nil)
		}},
		"wrong: its own finalizer holds it": {options, func(tr trial) {
			obj := status(1, silent)
			obj["metadata"].(map[string]any)["finalizers"] = []any{"example.com/ours"}
			tr.created("user", object(nil))
			tr.updated("operator", object(nil), obj)
			obj["metadata"].(map[string]any)["deletionTimestamp"] = "2000-01-01T00:00:00Z"
			tr.Stuck("the Secret is missing", nil)
		}},
		"right: the object is gone": {options, func(tr trial) {
			tr.created("user", status(1, silent))
			tr.deleted("user", status(1, silent))
			tr.Stuck("the Secret is missing", blocked)
		}},
		"wrong: it denies that it is stalled": {options, show(true, nil, condition("Stalled", "False", "reason", "AllGood"))},
		"wrong: a deletion waits":             {options, show(true, nil, silent)},
		"wrong: a condition without a reason": {options, show(true, nil, condition("Ready", "False"))},
		"wrong: a call waits":                 {options, show(false, blocked, silent)},
	}
}
