// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

func condition(kind, status, reason, message string) any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-03-04T04:06:07Z"}
}

func database(status map[string]any) *unstructured.Unstructured {
	return object("example.com/v1", "Database", "db", map[string]any{"status": status})
}

func deleted(finalizers ...string) *unstructured.Unstructured {
	obj := database(map[string]any{"conditions": []any{condition("Ready", "True", "", "")}})
	_ = unstructured.SetNestedField(obj.Object, "2026-03-04T04:06:07Z", "metadata", "deletionTimestamp")
	obj.SetFinalizers(finalizers)
	return obj
}

// The state of an object, whether something is wrong with it, and whether a later one is the same.
func TestState(t *testing.T) {
	ready := database(map[string]any{"conditions": []any{condition("Ready", "True", "Done", "all good")}})
	failed := database(map[string]any{"conditions": []any{condition("Ready", "False", "NoSecret", "since 3s"), condition("Stalled", "True", "NoSecret", "")}})
	failedLater := database(map[string]any{"conditions": []any{condition("Stalled", "True", "NoSecret", ""), condition("Ready", "False", "NoSecret", "since 9s")}})
	behind := database(map[string]any{"observedGeneration": int64(1), "conditions": []any{condition("Ready", "True", "Done", "")}})
	behind.SetGeneration(2)
	pending := database(map[string]any{"phase": "Pending", "tries": int64(3)})
	counts := database(map[string]any{"tries": int64(3), "at": "2026-03-04T04:06:07Z"})
	countsLater := database(map[string]any{"tries": int64(3), "at": "2026-03-04T04:07:07Z"})
	for name, test := range map[string]struct {
		obj, later *unstructured.Unstructured
		text       string
		well       bool
		again      bool
	}{
		"ready":                     {ready, failed, "Ready=True (Done)", true, false},
		"failed":                    {failed, ready, "Ready=False (NoSecret), Stalled=True (NoSecret)", false, false},
		"failed for the same cause": {failed, failedLater, "Ready=False (NoSecret), Stalled=True (NoSecret)", false, true},
		"behind":                    {behind, ready, "Ready=True (Done), its spec was not observed", false, false},
		"a phase":                   {pending, pending.DeepCopy(), "phase Pending", false, true},
		"a status":                  {counts, countsLater, `status {"at":"(time)","tries":3}`, false, true},
		"no status":                 {database(nil), nil, "there, without a status", false, false},
		"gone":                      {nil, nil, "gone", false, false},
		"held":                      {deleted("b", "a"), deleted("a", "b"), "being deleted, held by a, b, Ready=True", false, true},
		"held by another":           {deleted("a"), deleted("b"), "being deleted, held by a, Ready=True", false, false},
		"let go":                    {deleted("a"), nil, "being deleted, held by a, Ready=True", false, false},
	} {
		s := recording.StateOf(test.obj)
		if got := s.String(); got != test.text || s.Well() != test.well || s.Again(recording.StateOf(test.later)) != test.again {
			t.Errorf("%s: got %q, well %v, again %v", name, got, s.Well(), s.Again(recording.StateOf(test.later)))
		}
	}
}

// Of the subjects, those that were well are no failure.
func TestUnwell(t *testing.T) {
	bad, good := database(nil), object("v1", "Pod", "x", map[string]any{"status": map[string]any{"conditions": []any{condition("Ready", "True", "", "")}}})
	r := &recording.Recording{Objects: []*unstructured.Unstructured{bad, good}}
	r.Subjects = []recording.Subject{recording.SubjectOf(good), recording.SubjectOf(bad), {APIVersion: "v1", Kind: "Pod", Name: "gone"}}
	if diff := cmp.Diff([]recording.Subject{recording.SubjectOf(bad)}, r.Unwell()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What was an hour ago is an hour ago when the recording is replayed. Other texts stay.
func TestTimesMove(t *testing.T) {
	obj := object("v1", "ConfigMap", "x", map[string]any{"spec": []any{
		"2026-03-04T04:06:07Z", "2026-03-04T04:06:07.123000Z", "2026-03-04T06:06:07+02:00", "at 2026-03-04T04:06:07Z", "2026-03-04", int64(1772597167),
	}})
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "y", map[string]any{"spec": "2026-03-04T04:06:07Z"})
	r := &recording.Recording{Head: recording.Head{Recorded: recorded}, Objects: []*unstructured.Unstructured{obj, crd}}
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	r.At(start)
	want := []any{
		"1999-12-31T23:00:00Z", "1999-12-31T23:00:00.123000Z", "2000-01-01T01:00:00+02:00", "at 2026-03-04T04:06:07Z", "2026-03-04", int64(1772597167),
	}
	if diff := cmp.Diff(want, obj.Object["spec"]); diff != "" || crd.Object["spec"] != "2026-03-04T04:06:07Z" || !r.Recorded.Equal(start) {
		t.Errorf("-want +got:\n%s\n%v", diff, crd.Object["spec"])
	}
}
