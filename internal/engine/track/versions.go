// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions are the versions of the objects that a reconcile has read. A nil one notes nothing.
type Versions struct{ of map[types.UID]uint64 }

// NewVersions returns versions that note something.
func NewVersions() *Versions { return &Versions{make(map[types.UID]uint64)} }

func (v *Versions) note(obj client.Object) {
	if v != nil && obj.GetUID() != "" {
		v.of[obj.GetUID()] = Hash([]byte(obj.GetResourceVersion()))
	}
}

func (v *Versions) noteAll(list client.ObjectList) {
	if v == nil {
		return
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { //nolint:errcheck // a list without items has none to note
		if obj, ok := item.(client.Object); ok {
			v.note(obj)
		}
		return nil
	})
}

// Foreign reports whether something has changed since before that is not one of our writes, which
// are given as hashes of their resource versions.
func (v *Versions) Foreign(before *Versions, ours map[uint64]bool) bool {
	for uid, version := range v.of {
		if before.of[uid] != version && !ours[version] {
			return true
		}
	}
	for uid := range before.of {
		if _, ok := v.of[uid]; !ok {
			return true
		}
	}
	return false
}
