// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// entry is the managed fields of a manager, which wrote the given seconds after the start.
func entry(manager string, seconds int, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: "Apply", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		Time: &metav1.Time{Time: start.Add(time.Duration(seconds) * time.Second)},
	}
}

const (
	ownsTier      = `{"f:metadata":{"f:labels":{".":{},"f:tier":{}}}}`
	ownsOther     = `{"f:metadata":{"f:labels":{"f:other":{}}}}`
	ownsLabels    = `{"f:metadata":{"f:labels":{}}}`
	ownsFinalizer = `{"f:metadata":{"f:finalizers":{".":{},"v:\"theirs\"":{}}}}`
	ownsReady     = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}}}}`
	ownsUp        = `{"f:status":{"f:conditions":{"k:{\"type\":\"Up\"}":{".":{},"f:status":{},"f:type":{}}}}}`
	ownsFirstHost = `{"f:spec":{"f:hostAliases":{"i:0":{"f:ip":{}}}}}`
)

// The manager that is named has written the value that our write replaced.
func TestManagers(t *testing.T) {
	tier, conditions := []string{".metadata.labels.tier"}, []string{".status.conditions[Up]"}
	tests := []struct {
		name    string
		paths   []string
		entries []metav1.ManagedFieldsEntry
		want    []string
	}{
		{"none", tier, nil, nil},
		{"the owner of the field", tier, []metav1.ManagedFieldsEntry{entry("helm", 1, ownsTier), entry("kubectl", 2, ownsOther)}, []string{"helm"}},
		{"the owner of the map", tier, []metav1.ManagedFieldsEntry{entry("helm", 1, ownsLabels)}, []string{"helm"}},
		{"the owner of a condition", conditions, []metav1.ManagedFieldsEntry{entry("helm", 1, ownsUp), entry("kubectl", 2, ownsReady)}, []string{"helm"}},
		{"the owner of an item", []string{".metadata.finalizers"}, []metav1.ManagedFieldsEntry{entry("helm", 1, ownsFinalizer)}, []string{"helm"}},
		{"the owner of an indexed item", []string{".spec.hostAliases"}, []metav1.ManagedFieldsEntry{entry("helm", 1, ownsFirstHost)}, []string{"helm"}},
		{"a field that is as it was", []string{".metadata.labels.other"}, []metav1.ManagedFieldsEntry{entry("helm", 1, ownsOther)}, nil},
		{"us, and another client", tier, []metav1.ManagedFieldsEntry{entry("things", 2, ownsTier), entry("helm", 1, ownsTier)}, []string{"helm"}},
		{"another name of ours", tier, []metav1.ManagedFieldsEntry{entry("things-2", 2, ownsTier), entry("helm", 1, ownsTier)}, []string{"helm"}},
		{"only us", tier, []metav1.ManagedFieldsEntry{entry("things", 1, ownsTier)}, []string{"things"}},
		{"the last three, the newest first", tier,
			[]metav1.ManagedFieldsEntry{entry("a", 1, ownsTier), entry("d", 4, ownsTier), entry("b", 2, ownsTier), entry("c", 3, ownsTier), entry("c", 0, ownsTier)},
			[]string{"d", "c", "b"}},
		{"no time", tier, []metav1.ManagedFieldsEntry{{Manager: "old", FieldsV1: metav1.NewFieldsV1(ownsTier)}, entry("new", 1, ownsTier)}, []string{"new", "old"}},
		{"fields that are no set", tier, []metav1.ManagedFieldsEntry{entry("helm", 1, `{"x"`), {Manager: "old"}}, nil},
		{"the object itself", nil, []metav1.ManagedFieldsEntry{entry("helm", 1, ownsOther), entry("things", 2, ownsTier)}, []string{"helm"}},
		{"the object itself, and only us", nil, []metav1.ManagedFieldsEntry{entry("things", 2, ownsTier)}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := disputedPod("theirs", corev1.ConditionFalse)
			before.ManagedFields = test.entries
			loop := &Loop{Fight: true, Paths: test.paths, Write: &track.Write{
				Verb: "patch", Object: self, Before: track.SnapshotOf(before), After: track.SnapshotOf(disputedPod("ours", corev1.ConditionTrue)),
			}}
			equal(t, "managers", test.want, loop.managers([]string{"things", "things-2"}))
		})
	}
}

// disputedPod has the value of one side in each field that is fought over.
func disputedPod(side string, up corev1.ConditionStatus) *corev1.Pod {
	obj := pod("self")
	obj.Labels = map[string]string{"tier": side, "other": "same"}
	obj.Finalizers = []string{side}
	obj.Spec.HostAliases = []corev1.HostAlias{{IP: side}}
	obj.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: "Up", Status: up}}
	return obj
}

func TestManagersOfAnUnknownState(t *testing.T) {
	for _, before := range []*track.Snapshot{nil, {Absent: true}} {
		loop := &Loop{Fight: true, Write: &track.Write{Verb: "create", Before: before}}
		if got := loop.managers(nil); got != nil {
			t.Errorf("got %v", got)
		}
	}
}
