// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func versionsOf(pairs ...string) *Versions {
	v := NewVersions()
	list := &corev1.PodList{}
	for i := 0; i < len(pairs); i += 2 {
		obj := pod(pairs[i])
		obj.ResourceVersion = pairs[i+1]
		list.Items = append(list.Items, *obj)
	}
	v.noteAll(list)
	return v
}

// A change is foreign unless it has the version of one of our writes.
func TestForeignChanges(t *testing.T) {
	ours := map[uint64]bool{Hash([]byte("7")): true}
	tests := []struct {
		name        string
		before, now *Versions
		want        bool
	}{
		{"unchanged", versionsOf("a", "1"), versionsOf("a", "1"), false},
		{"our write", versionsOf("a", "1"), versionsOf("a", "7"), false},
		{"changed", versionsOf("a", "1", "b", "1"), versionsOf("a", "1", "b", "2"), true},
		{"new", versionsOf("a", "1"), versionsOf("a", "1", "b", "1"), true},
		{"created by us", versionsOf("a", "1"), versionsOf("a", "1", "b", "7"), false},
		{"gone", versionsOf("a", "1", "b", "1"), versionsOf("a", "1"), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			same(t, "", test.want, test.now.Foreign(test.before, ours))
		})
	}
}

// What has no name yet is not noted, and nothing is if it is not wanted.
func TestVersionsThatAreNotNoted(t *testing.T) {
	v := NewVersions()
	v.note(&corev1.Pod{})
	if len(v.of) > 0 {
		t.Errorf("got %v", v.of)
	}
	var unwanted *Versions
	unwanted.note(pod("a"))
	unwanted.noteAll(&corev1.PodList{Items: []corev1.Pod{*pod("a")}})
}

// A record notes the versions of what its client reads.
func TestVersionsOfReads(t *testing.T) {
	server := newServer(t, "a", "b")
	record := &Record{}
	record.Watch(nil, NewVersions())
	c := NewClient(server, record)
	get(t, c, "a")
	same(t, "versions after a Get", 1, len(record.Reads().of))
	must(t, c.List(t.Context(), &corev1.PodList{}))
	same(t, "versions after a List", 2, len(record.Reads().of))
}
