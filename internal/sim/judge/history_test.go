// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

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

// historyOptions are those of a plan whose reference has an object with a history.
func historyOptions(kind fault.Kind) Options {
	first := snapshot.Snapshot{"widgets default/x": {".status.conditions[Ready].type": "Ready"}}
	return Options{Plan: withFault(kind), Reference: &Reference{Checkpoints: []snapshot.Snapshot{first, {"widgets default/x": fullHistory()}}}}
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
