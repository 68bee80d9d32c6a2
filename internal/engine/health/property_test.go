// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/engine/health"
)

// The order of conditions does not count, and a summary changes nothing.
func TestOrderOfConditions(t *testing.T) {
	types := []string{"Ready", "Available", "Stalled", "Reconciling", "Progressing", "Degraded", "Failed", "Synced", "Accepted", "Succeeded", "A", "B"}
	kinds := [][2]string{{"example.com/v1", "Thing"}, {"apps/v1", "Deployment"}, {"v1", "Pod"}, {"v1", "Node"}, {"batch/v1", "Job"}}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		var conditions []any
		for _, c := range rapid.SliceOfNDistinct(rapid.SampledFrom(types), 0, 6, rapid.ID).Draw(t, "types") {
			conditions = append(conditions, map[string]any{
				"type": c, "status": rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, "status"),
				"reason": rapid.SampledFrom([]string{"", "Error", "X"}).Draw(t, "reason"), "message": rapid.SampledFrom([]string{"", c + " says"}).Draw(t, "message"),
				"severity": rapid.SampledFrom([]string{"", "Error", "Info"}).Draw(t, "severity"), "observedGeneration": rapid.Int64Range(0, 2).Draw(t, "observed"),
			})
		}
		of := func(conditions []any) health.Health {
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": kind[0], "kind": kind[1], "metadata": map[string]any{"generation": int64(2)}, "status": map[string]any{"conditions": conditions, "phase": "Running"},
			}}
			before := runtime.DeepCopyJSON(u.Object)
			got := health.Of(u)
			if diff := cmp.Diff(before, u.Object); diff != "" {
				t.Fatalf("the object has changed: %s", diff)
			}
			return got
		}
		want := of(conditions)
		if got := of(rapid.Permutation(conditions).Draw(t, "order")); got != want {
			t.Fatalf("%v in one order, and %v in another", want, got)
		}
	})
}

// FuzzOf summarizes any JSON object: it has one of the states, the same one each time, and one that
// is not ready says why.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":1},"spec":{"replicas":2},"status":{"observedGeneration":1,"conditions":[{"type":"Progressing"}]}}`,
		`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}},1]}}`,
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1},"status":{"observedGeneration":1,"desiredNumberScheduled":1.5,"conditions":[1]}}`,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"deletionTimestamp":"x"},"status":[]}`,
		`{"apiVersion":"example.com/v1","kind":"Thing","status":{"phase":"x","conditions":{"a":"b"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal(data, &u.Object) != nil || u.Object == nil {
			return
		}
		got := health.Of(u)
		if again := health.Of(u); got != again {
			t.Errorf("%v, then %v", got, again)
		}
		states := []health.State{health.StateReady, health.StateProgressing, health.StateFailed, health.StateTerminating, health.StateUnknown}
		if !slices.Contains(states, got.State) || got.State != health.StateReady && got.Reason == "" && got.Message == "" {
			t.Errorf("%#v", got)
		}
	})
}
