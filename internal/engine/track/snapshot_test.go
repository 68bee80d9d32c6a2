// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func filledPod(transition time.Time) *corev1.Pod {
	obj := pod("a")
	obj.ResourceVersion = "7"
	obj.Labels = map[string]string{"x.y/z": "1"}
	obj.Finalizers = []string{"example.com/f"}
	obj.Spec.Hostname = "host"
	obj.Status.Phase = "Running"
	obj.Status.Conditions = []corev1.PodCondition{{Type: "Up", Status: "True", LastTransitionTime: metav1.NewTime(transition)}}
	return obj
}

// The leaves are what a write can change, without the times of conditions.
func TestLeaves(t *testing.T) {
	s := SnapshotOf(filledPod(time.Unix(1, 0)))
	want := map[string]any{
		".metadata.labels[x.y/z]": "1", ".metadata.finalizers": []any{"example.com/f"}, ".spec.hostname": "host",
	}
	same(t, "the object", want, s.Leaves(""))
	status := map[string]any{".status.phase": "Running", ".status.conditions[Up]": map[string]any{"type": "Up", "status": "True"}}
	same(t, "the status", status, s.Leaves("status"))
	same(t, "the status later", status, SnapshotOf(filledPod(time.Unix(2, 0))).Leaves("status"))
}

// The leaves of some paths are what all leaves have of their fields.
func TestLeavesOfPaths(t *testing.T) {
	for name, s := range map[string]*Snapshot{
		"typed": SnapshotOf(filledPod(time.Unix(1, 0))), "a field that is a map": SnapshotOf(&corev1.ConfigMap{Data: map[string]string{"a": "1"}}),
		"encoded": {source: []byte(`{"metadata":{"labels":{"a":"1"}},"spec":{"b":2},"status":{"c":3}}`)}, "absent": {Absent: true},
	} {
		for _, paths := range [][]string{nil, {}, {".metadata.finalizers"}, {".status.phase", ".status.conditions"}, {".data.a"}, {".metadata.labels", ".spec.hostname"}, {".unknown"}} {
			for _, sub := range []string{"", "status"} {
				wanted := func(leaves map[string]any) map[string]any {
					maps.DeleteFunc(leaves, func(path string, _ any) bool {
						return paths != nil && !slices.ContainsFunc(paths, func(p string) bool { return Related(p, path) })
					})
					return leaves
				}
				fresh := *s
				same(t, name+" "+sub+fmt.Sprint(paths), wanted(s.Leaves(sub)), wanted(fresh.leavesOfPaths(paths, sub)))
				s.root = nil
			}
		}
	}
}

// A patch whose content is known sends the same as one that is decoded.
func TestContentPatch(t *testing.T) {
	content := map[string]any{"metadata": map[string]any{"uid": "u", "labels": map[string]any{"x.y/z": nil}}, "spec": map[string]any{"a": []any{int64(1)}, "e": map[string]any{}}}
	patch, err := ContentPatch(types.MergePatchType, content)
	if err != nil {
		t.Fatal(err)
	}
	frozen, sent, err := freeze(patch, pod("a"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := frozen.Data(nil)
	if err != nil || frozen.Type() != types.MergePatchType {
		t.Fatalf("%s: %v", frozen.Type(), err)
	}
	same(t, "fields", fieldsOf(data), sent.Paths())
	if _, err := ContentPatch(types.MergePatchType, map[string]any{"a": func() {}}); err == nil {
		t.Error("content that JSON does not have is no error")
	}
}

// The answer of the API server does not change with the object that the step has.
func TestSnapshotsOfAnswers(t *testing.T) {
	obj := filledPod(time.Unix(1, 0))
	s := snapshotOfAnswer(obj, false)
	obj.Spec.Hostname, obj.ResourceVersion = "changed", "8"
	if got := s.Leaves("")[".spec.hostname"]; got != "host" || s.Version != "7" || s.UID != "uid-a" {
		t.Errorf("got %v in %+v", got, s)
	}
	kept := filledPod(time.Unix(1, 0))
	kept.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}}
	uncopied, copied := snapshotOfAnswer(kept, true), snapshotOfAnswer(kept, false)
	for _, paths := range [][]string{nil, {".metadata.labels", ".metadata.finalizers"}, {".status"}} {
		for _, sub := range []string{"", "status"} {
			same(t, "an answer that is kept", copied.leavesOfPaths(paths, sub), uncopied.leavesOfPaths(paths, sub))
			uncopied.root, copied.root = nil, nil
		}
	}
	for name, answer := range map[string]any{"no version": pod("a"), "no object": []string{"x"}, "no JSON": func() {}} {
		if got := snapshotOfAnswer(answer, false); got != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// What one encoding writes and another leaves out makes no difference.
func TestTrimmed(t *testing.T) {
	tests := []struct {
		name     string
		in, want any
	}{
		{"empty values", map[string]any{"a": nil, "b": "", "c": 0.0, "d": false, "e": []any{}, "f": map[string]any{"g": ""}}, nil},
		{"values", map[string]any{"a": "x", "b": ""}, map[string]any{"a": "x"}},
		{"items keep their places", []any{"", "x", map[string]any{"a": ""}}, []any{"", "x", map[string]any{"a": ""}}},
	}
	for _, test := range tests {
		same(t, "Trimmed", test.want, Trimmed(test.in))
	}
}

// A patch is compared by what it sent, and an update by what differs.
func TestChanges(t *testing.T) {
	before, after := filledPod(time.Unix(1, 0)), filledPod(time.Unix(1, 0))
	after.Spec.Hostname = "new"
	after.Labels = nil
	label, host := Change{".metadata.labels[x.y/z]", nil, true, false}, Change{".spec.hostname", "new", true, false}
	tests := []struct {
		name   string
		fields []string
		want   []Change
	}{
		{"an update", nil, []Change{label, host}},
		{"a patch", []string{".spec.hostname"}, []Change{host}},
		{"a patch of a field that is as it was", []string{".metadata.finalizers"}, []Change{{".metadata.finalizers", []any{"example.com/f"}, false, false}}},
	}
	for _, test := range tests {
		w := &Write{Sent: SentPaths(test.fields...), Before: SnapshotOf(before), After: SnapshotOf(after)}
		same(t, "Changes", test.want, w.Changes())
	}
	if got := (&Write{After: SnapshotOf(after)}).Changes(); got != nil {
		t.Errorf("of an unknown state: %v", got)
	}
}
