// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/internal/snapshot"
)

func sameEndChecks(*testing.T) map[string]check {
	world := func(value string) snapshot.Snapshot {
		return snapshot.Snapshot{"configmaps default/x": {".data.a": value}}
	}
	options := func(mask ...string) Options {
		r := &Reference{Checkpoints: []snapshot.Snapshot{world("1"), world("2")}, Mask: map[string]bool{}}
		for _, field := range mask {
			r.Mask[field] = true
		}
		return Options{Reference: r}
	}
	end := func(values ...string) func(trial) {
		return func(tr trial) {
			var e End
			for _, value := range values {
				e.Checkpoints = append(e.Checkpoints, world(value))
			}
			tr.End(e)
		}
	}
	return map[string]check{
		"right: the same":                          {options(), end("1", "2"), nil},
		"right: what differs anyway":               {options("configmaps default/x .data.a"), end("3", "2"), nil},
		"right: the run without faults":            {Options{}, end("3"), nil},
		"right: the run was ended early":           {options(), func(tr trial) { tr.Abort(); end("3")(tr) }, nil},
		"right: checkpoints that were not reached": {options(), end("1"), nil},
		"right: one checkpoint more":               {options(), end("1", "2", "3"), nil},
		"wrong: another field than the masked one": {
			options("configmaps default/x .data.b"), end("3", "2"), []string{"same-end: at checkpoint 1 of 2, the world is not what it is without the fault:"},
		},
		"wrong: the first checkpoint that differs": {
			options(), end("1", "3"), []string{"same-end: at checkpoint 2 of 2, the world is not what it is without the fault:"},
		},
	}
}

func noPanicChecks(*testing.T) map[string]check {
	log := func(line string) func(trial) { return func(tr trial) { tr.End(End{Logs: []string{line}}) } }
	return map[string]check{
		"right: another error":                                  {show: log("it does not work")},
		"right: an injected panic":                              {show: log("panic: " + InjectedPanic + " [recovered]")},
		"right: a panic that the operator has recovered itself": {show: log("recovered a panic: nil map")},
		"wrong: another panic": {
			show: log("panic: nil map [recovered]"),
			want: []string{"no-panic: the operator panicked, and controller-runtime recovered it: panic: nil map [recovered]"},
		},
	}
}

func noSecretChecks(*testing.T) map[string]check {
	secret := func(actor, value string) func(trial) {
		return func(tr trial) {
			tr.Changed(apiserver.Change{
				Type: "ADDED", Actor: actor, Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Name: "s", UID: "9",
				New: map[string]any{"data": map[string]any{"key": base64.StdEncoding.EncodeToString([]byte(value))}},
			})
		}
	}
	after := func(first, then func(trial)) func(trial) { return func(tr trial) { first(tr); then(tr) } }
	users := secret("user", "hunter22")
	inStatus := func(tr trial) {
		tr.created("operator", object(map[string]any{"status": map[string]any{"message": "hunter22 is wrong"}}))
	}
	inSpec := updates("operator", status(1), object(map[string]any{"data": map[string]any{"password": "hunter22"}}))
	event := func(tr trial) { tr.Event(&apiserver.Request{Body: []byte("hunter22")}) }
	log := func(tr trial) { tr.End(End{Logs: []string{"using hunter22"}}) }
	return map[string]check{
		"right: elsewhere in an object":   {show: after(users, inSpec)},
		"right: a Secret of the operator": {show: after(secret("operator", "hunter22"), log)},
		"right: too short to be one":      {show: after(secret("user", "hunt"), log)},
		"right: no longer known by heart": {show: after(users, updates("operator", status(1), status(2)))},
		"right: copied into a Secret": {show: after(users, func(tr trial) {
			tr.Changed(apiserver.Change{
				Type: "ADDED", Actor: "operator", Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Name: "copy", UID: "10",
				New: map[string]any{"status": map[string]any{"message": "hunter22"}},
			})
		})},
		"wrong: in a status":           {show: after(users, inStatus), want: []string{"no-secret: a value of a Secret appears in the status of configmaps default/x"}},
		"wrong: in a Kubernetes Event": {show: after(users, event), want: []string{"no-secret: a value of a Secret appears in an Event"}},
		"wrong: in the log":            {show: after(users, log), want: []string{"no-secret: a value of a Secret appears in the log"}},
	}
}
