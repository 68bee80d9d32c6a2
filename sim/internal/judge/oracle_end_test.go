// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/snapshot"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
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
		"right: the same": {options(), end("1", "2")},
		"right: what comes by the clock, at another time":        {clockOptions(fault.CrashAfterWrite), clockEnd(time.Hour)},
		"right: a condition that comes by the clock":             {clockOptions(fault.CrashAfterWrite), clockStatus("Active", "True")},
		"wrong: a condition that nothing but the fault explains": {clockOptions(fault.CrashAfterWrite), clockStatus("Degraded", "True")},
		"right: what was due before an object was replaced":      {clockOptions(fault.Recreate), clockEnd(0)},
		"wrong: what comes by the clock, at the same time":       {clockOptions(fault.CrashAfterWrite), clockEnd(0)},
		"right: the status of an object that is being deleted":   {deletedOptions(), history(".status.selector", "b")},
		"right: what differs anyway":                             {options("configmaps default/x .data.a"), end("3", "2")},
		"right: the run without faults":                          {Options{}, end("3")},
		"right: the run was ended early":                         {options(), func(tr trial) { tr.Abort(); end("3")(tr) }},
		"right: checkpoints that were not reached":               {options(), end("1")},
		"right: one checkpoint more":                             {options(), end("1", "2", "3")},
		"wrong: another field than the masked one":               {options("configmaps default/x .data.b"), end("3", "2")},
		"wrong: the first checkpoint that differs":               {options(), end("1", "3")},
	}
}

func sameHistoryChecks(*testing.T) map[string]check {
	deleted := func(tr trial) { tr.Disturbed("owner") }
	wiped := func(tr trial) { tr.StatusWiped("owner") }
	return map[string]check{
		"right: the same":                                             {historyOptions(fault.Recreate), history(".status.restarts", "1")},
		"right: a field that is not history":                          {withoutSameEnd(historyOptions(fault.Recreate)), history(".status.selector", "b")},
		"right: the run without faults":                               {Options{}, history(".status.restarts", "3")},
		"right: a counter of an object that others have created anew": {historyOptions(fault.Recreate), forgotten(deleted, ".status.restarts", "0")},
		"right: a counter in the metadata of such an object":          {historyOptions(fault.Recreate), forgotten(deleted, ".metadata.labels.example.com/restart-attempt", "0")},
		"right: a counter that is zero, or absent":                    {zeroOptions(), history(".status.restarts", "")},
		"right: a condition of the past that says no":                 {historyOptions(fault.WipeStatus), history(".status.conditions[Paused].status", "")},
		"right: a status that was taken away":                         {historyOptions(fault.WipeStatus), forgotten(wiped, ".status.lastScheduleTime", "")},
		"wrong: the status of another object was taken away":          {historyOptions(fault.WipeStatus), history(".status.restarts", "0")},
		"wrong: a counter":                                            {historyOptions(fault.CrashAfterWrite), history(".status.restarts", "0")},
		"wrong: a condition of the past":                              {historyOptions(fault.TakeDetour), history(".status.conditions[Resumed].type", "")},
	}
}

// A condition that says that something is over, of an object that is done, may be absent.
func TestConditionsOfWhatIsOver(t *testing.T) {
	for text, test := range map[string]struct {
		available, progressing string // without the fault
		accused                bool
	}{
		"over, and done":      {"True", "False", false},
		"over, but not done":  {"False", "False", true},
		"not over":            {"True", "True", true},
		"of an unknown state": {"True", "Unknown", true},
	} {
		world := func(progressing bool) snapshot.Snapshot {
			fields := map[string]string{".status.conditions[Available].status": test.available}
			if progressing {
				fields[".status.conditions[Progressing].type"] = "Progressing"
				fields[".status.conditions[Progressing].status"] = test.progressing
			}
			return snapshot.Snapshot{"widgets default/x": fields}
		}
		o := Options{Plan: withFault(fault.CrashAfterWrite), Reference: &Reference{Checkpoints: []snapshot.Snapshot{world(true)}}}
		got := try(t, o, func(tr trial) { tr.End(End{Checkpoints: []snapshot.Snapshot{world(false)}}) })
		if len(got) > 0 != test.accused {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// clockOptions are those of a plan whose operator creates ConfigMaps by the clock.
func clockOptions(kind fault.Kind) Options {
	return Options{Plan: withFault(kind), Reference: &Reference{
		Checkpoints: []snapshot.Snapshot{{"widgets default/w": {}}}, times: []time.Duration{time.Hour},
		periodic: map[string]bool{"create configmaps ": true, "update widgets status": true}, said: map[string]bool{"widgets default/w Active=True": true},
	}}
}

// clockStatus shows an end, later than without the fault, with a condition that is not there then.
func clockStatus(kind, status string) func(trial) {
	path := conditionsPath + kind + "]"
	return clockWorld(time.Hour, snapshot.Snapshot{"widgets default/w": {path + ".type": kind, path + ".status": status}})
}

// clockEnd shows an end with one ConfigMap more, which comes so much later than without the fault.
func clockEnd(later time.Duration) func(trial) {
	return clockWorld(later, snapshot.Snapshot{"configmaps default/x": {}, "widgets default/w": {}})
}

func clockWorld(later time.Duration, world snapshot.Snapshot) func(trial) {
	return func(tr trial) {
		tr.Idle(Idle{Checkpoint: 1})
		tr.ledger.times[0] = time.Hour + later
		tr.End(End{Checkpoints: []snapshot.Snapshot{world}})
	}
}

// historyOptions are those of a plan whose reference has an object with a history.
func historyOptions(kind fault.Kind) Options {
	first := snapshot.Snapshot{"widgets default/x": {".status.conditions[Ready].type": "Ready"}}
	return Options{Plan: withFault(kind), Reference: &Reference{Checkpoints: []snapshot.Snapshot{first, {"widgets default/x": fullHistory()}}}}
}

// deletedOptions are those of a plan in whose reference the object is being deleted at the end.
func deletedOptions() Options {
	o := historyOptions(fault.WipeStatus)
	o.Reference.Checkpoints[1]["widgets default/x"][".metadata.deletionTimestamp"] = timeText
	o.Reference.Mask = map[string]bool{"widgets default/x .metadata.deletionTimestamp": true}
	return o
}

func withoutSameEnd(o Options) Options {
	o.Without = map[oracle.Name]string{oracle.SameEnd: "it is tested alone"}
	return o
}

// zeroOptions are those of a plan in whose reference a counter is zero.
func zeroOptions() Options {
	o := historyOptions(fault.Recreate)
	o.Reference.Checkpoints[1]["widgets default/x"][".status.restarts"] = "0"
	return o
}

// forgotten shows the end of history for an object to whose owner something was done.
func forgotten(done func(trial), path, value string) func(trial) {
	return func(tr trial) {
		owned := object(map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "owner"}}}})
		done(tr)
		tr.Changed(apiserver.Change{
			Type: "ADDED", Actor: "operator", Verb: "create", Resource: schema.GroupVersionResource{Version: "v1", Resource: "widgets"},
			Namespace: "default", Name: "x", UID: "1", New: owned,
		})
		history(path, value)(tr)
	}
}

func fullHistory() map[string]string {
	return map[string]string{
		".status.restarts": "1", ".status.lastScheduleTime": timeText, ".status.selector": "a", ".status.replicas": "1",
		".status.conditions[Ready].type": "Ready", ".status.conditions[Resumed].type": "Resumed",
		".metadata.labels.example.com/restart-attempt": "1", ".status.conditions[Paused].status": "False", ".spec.restarts": "1",
	}
}

// history shows an end with another value in a field.
func history(path, value string) func(trial) {
	return func(tr trial) {
		fields := fullHistory()
		if fields[path] = value; value == "" {
			delete(fields, path)
		}
		first := snapshot.Snapshot{"widgets default/x": {".status.conditions[Ready].type": "Ready"}}
		tr.End(End{Checkpoints: []snapshot.Snapshot{first, {"widgets default/x": fields}}})
	}
}

// What users read must not depend on the past, and what only counts or dates the past may.
func TestHistory(t *testing.T) {
	for path, want := range map[string]map[string]oracle.Name{
		".status.restarts":                             {"0": oracle.SameHistory, "": oracle.SameHistory, "many": oracle.SameEnd},
		".status.lastScheduleTime":                     {"": oracle.SameHistory, "yesterday": oracle.SameEnd},
		".status.selector":                             {"b": oracle.SameEnd, "": oracle.SameEnd},
		".status.replicas":                             {"0": oracle.SameEnd, "": oracle.SameEnd},
		".spec.restarts":                               {"0": oracle.SameEnd},
		".metadata.labels.example.com/restart-attempt": {"0": oracle.SameEnd},
		".status.conditions[Resumed].type":             {"": oracle.SameHistory},
		".status.conditions[Ready].type":               {"": oracle.SameEnd},
	} {
		for value, name := range want {
			got := try(t, historyOptions(fault.TakeDetour), history(path, value))
			if len(got) != 1 || !strings.HasPrefix(got[0], string(name)+": ") {
				t.Errorf("%s is %q: got %v, want %s", path, value, got, name)
			}
		}
	}
	if got := try(t, historyOptions(fault.CrashAfterWrite), history(".status.conditions[Resumed].type", "")); len(got) != 1 || !strings.HasPrefix(got[0], "same-end: ") {
		t.Errorf("a condition that is lost by a crash is no history: %v", got)
	}
	for field, want := range map[string]bool{
		"restarts": true, "restartsCountTowardsMax": true, "jobRestartsCountTowardsMax": true, "countTowardsMax": false, "restartCount": true, "retries": true, "retryCount": true, "attempts": true,
		"failures": true, "currentRevision": true, "readyReplicas": false, "availableReplicas": false, "succeeded": false, "ready": false,
		"failed": false, "nodeCount": false, "port": false, "size": false,
	} {
		if got := counterName.MatchString(field); got != want {
			t.Errorf("%s counts what has happened: %t, want %t", field, got, want)
		}
	}
}

func noPanicChecks(*testing.T) map[string]check {
	log := func(line string) func(trial) { return func(tr trial) { tr.End(End{Logs: []string{line}}) } }
	return map[string]check{
		"right: another error":                                  {show: log("it does not work")},
		"right: an injected panic":                              {show: log("panic: " + InjectedPanic + " [recovered]")},
		"right: a panic that the operator has recovered itself": {show: log("recovered a panic: nil map")},
		"wrong: another panic":                                  {show: log("panic: nil map [recovered]")},
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
	inSpec := updates("operator", object(nil), object(map[string]any{"data": map[string]any{"password": "hunter22"}}))
	event := func(tr trial) { tr.Event(&apiserver.Request{Body: []byte("hunter22")}) }
	log := func(tr trial) { tr.End(End{Logs: []string{"using hunter22"}}) }
	return map[string]check{
		"right: elsewhere in an object": {show: after(users, inSpec)},
		"right: a string that a user has written elsewhere, too": {show: after(users, func(tr trial) {
			tr.created("user", object(map[string]any{"spec": map[string]any{"name": "hunter22"}}))
			log(tr)
		})},
		"right: the name of a user": {show: func(tr trial) {
			tr.Changed(apiserver.Change{
				Type: "ADDED", Actor: "user", Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Name: "s", UID: "9",
				New: map[string]any{"data": map[string]any{"username": base64.StdEncoding.EncodeToString([]byte("hunter22"))}},
			})
			log(tr)
		}},
		"right: a Secret of the operator": {show: after(secret("operator", "hunter22"), log)},
		"right: too short to be one":      {show: after(secret("user", "hunt"), log)},
		"right: no longer known by heart": {show: after(users, updates("operator", status(1), status(2)))},
		"right: copied into a Secret": {show: after(users, func(tr trial) {
			tr.Changed(apiserver.Change{
				Type: "ADDED", Actor: "operator", Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Name: "copy", UID: "10",
				New: map[string]any{"status": map[string]any{"message": "hunter22"}},
			})
		})},
		"wrong: in a status":           {show: after(users, inStatus)},
		"wrong: in a Kubernetes Event": {show: after(users, event)},
		"wrong: in the log":            {show: after(users, log)},
	}
}
