// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func TestStateOf(t *testing.T) {
	tests := []struct {
		name, object string
		want         string
		level        Level
	}{
		{"Job that was just made", `{apiVersion: batch/v1, kind: Job}`, "Pending", LevelBusy},
		{"Job with a Pod", `{apiVersion: batch/v1, kind: Job, status: {active: 1}}`, "Running", LevelBusy},
		{"Job whose Pod ended", `{apiVersion: batch/v1, kind: Job, status: {uncountedTerminatedPods: {succeeded: [a]}}}`, "Running", LevelBusy},
		{"Job of three", `{apiVersion: batch/v1, kind: Job, spec: {completions: 3}, status: {active: 1, succeeded: 2}}`, "Running, succeeded 2/3", LevelBusy},
		{"Job that is done", `{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`, "Complete", LevelGood},
		{"Job that failed", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded}]}}`, "Failed: DeadlineExceeded", LevelBad},
		{"Job that is suspended", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Suspended, status: "True"}]}}`, "Suspended", LevelNone},
		{"Pod that runs", `{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{ready: true}]}}`, "Running", LevelGood},
		{"Pod that is not ready", `{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{ready: true}, {ready: false}]}}`, "Running, ready 1/2", LevelBusy},
		{"Pod that crashes", `{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{ready: false, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, "CrashLoopBackOff, restarts 4", LevelBad},
		{"Pod that is done", `{apiVersion: v1, kind: Pod, status: {phase: Succeeded, containerStatuses: [{state: {terminated: {reason: Completed}}}]}}`, "Completed", LevelGood},
		{"Pod that was evicted", `{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted}}`, "Evicted", LevelBad},
		{"Deployment", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}, status: {availableReplicas: 1}}`, "1/2 available", LevelBusy},
		{"Deployment scaled to nothing", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0}}`, "0/0 available", LevelGood},
		{"StatefulSet by default", `{apiVersion: apps/v1, kind: StatefulSet, status: {readyReplicas: 1}}`, "1/1 ready", LevelGood},
		{"DaemonSet", `{apiVersion: apps/v1, kind: DaemonSet, status: {desiredNumberScheduled: 3, numberReady: 3}}`, "3/3 ready", LevelGood},
		{"claim", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, "Bound", LevelGood},
		{"Service", `{apiVersion: v1, kind: Service, status: {loadBalancer: {}}}`, "", LevelNone},
		{"resource that is Ready", `{apiVersion: x/v1, kind: X, status: {url: "http://x", conditions: [{type: Ready, status: "True", message: fine}]}}`, "Ready, url http://x", LevelGood},
		{"resource that is not Ready yet", `{apiVersion: x/v1, kind: X, status: {conditions: [{type: Ready, status: "False", reason: Creating, message: waits for Pods}]}}`, "NotReady: waits for Pods", LevelBusy},
		{"resource that cannot be Ready", `{apiVersion: x/v1, kind: X, status: {conditions: [{type: Ready, status: "False", reason: CreateFailed}]}}`, "NotReady: CreateFailed", LevelBad},
		{"resource that does not know", `{apiVersion: x/v1, kind: X, status: {conditions: [{type: Ready, status: Unknown, reason: ProbeFailed}]}}`, "NotReady: ProbeFailed", LevelBusy},
		{"resource that is stalled", `{apiVersion: x/v1, kind: X, status: {conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True", message: quota}]}}`, "Stalled: quota", LevelBad},
		{"resource that only says it works", `{apiVersion: x/v1, kind: X, status: {conditions: [{type: Reconciling, status: "True", reason: Busy}]}}`, "Reconciling: Busy", LevelBusy},
		{"resource with a phase", `{apiVersion: x/v1, kind: X, status: {phase: Provisioning, observedGeneration: 1}}`, "Provisioning", LevelBusy},
		{"resource with fields only", `{apiVersion: x/v1, kind: X, status: {active: [a, b], nextScheduleTime: "2026-01-01T00:00:00Z", ok: true, none: null, a: 1, z: 2}}`, "a 1, active 2, next schedule 2026-01-01T00:00:00Z, ok true", LevelNone},
		{"resource without a status", `{apiVersion: x/v1, kind: X}`, "", LevelNone},
		{"resource that goes", `{apiVersion: x/v1, kind: X, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Ready}}`, "Terminating", LevelBusy},
		{"resource that is held", `{apiVersion: x/v1, kind: X, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [x/y]}}`, "Terminating, held by x/y", LevelBusy},
		{"conditions of a wrong shape", `{apiVersion: x/v1, kind: X, status: {conditions: [1, {type: [], status: 5}], phase: 7}}`, "", LevelNone},
		{"Job of a wrong shape", `{apiVersion: batch/v1, kind: Job, spec: [], status: hello}`, "Pending", LevelBusy},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := stateOf(parseObject(t, test.object), nil)
			if got.String() != test.want || got.Level != test.level {
				t.Errorf("got %q at level %d, want %q at level %d", got, got.Level, test.want, test.level)
			}
		})
	}
}

func TestPrinterColumnsShowMostOfAStatus(t *testing.T) {
	columns := []Column{{"Age", ".metadata.creationTimestamp"}, {"Ready", `.status.conditions[?(@.type=="Ready")].status`}, {"URL", ".status.site.url"}}
	u := parseObject(t, `{apiVersion: x/v1, kind: X, status: {a: 1, site: {url: "http://x"}}}`)
	if got, want := stateOf(u, columns).String(), "url http://x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	u := &unstructured.Unstructured{}
	must(t, utiljson.Unmarshal(asJSON, &u.Object))
	return u
}
