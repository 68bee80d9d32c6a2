// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keep returns a copy of the entries that [Covers] needs, whichever manager asks: all that was applied,
// and the entries of others that own something in a list or map that an applied one has as a whole.
// It returns nil if nothing was applied. The entries share their fields with managed.
func Keep(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for i := range managed {
		if e := &managed[i]; isApplied(e) || isEvidence(e, managed) {
			kept = append(kept, *e)
		}
	}
	return kept
}

func isApplied(e *metav1.ManagedFieldsEntry) bool {
	return e.Operation == metav1.ManagedFieldsOperationApply
}

// isEvidence reports whether an entry owns something in a list or map that another one has as a whole,
// of what was applied.
func isEvidence(e *metav1.ManagedFieldsEntry, managed []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managed, func(own metav1.ManagedFieldsEntry) bool {
		return isApplied(&own) && own.APIVersion == e.APIVersion && own.FieldsV1 != nil && e.FieldsV1 != nil &&
			isInside(reader{data: e.FieldsV1.GetRawBytes()}, reader{data: own.FieldsV1.GetRawBytes()})
	})
}

// isInside reports whether a node has a member below one that another node has as a whole. Both
// readers are at the beginning of their nodes.
func isInside(other, own reader) bool {
	whole := own
	if !whole.hasMembers() {
		return other.hasMembers()
	}
	for more := other.open(); more; more = other.skip() && other.next() {
		key, ok := other.key()
		if !ok {
			return false
		}
		mine := own
		if !isSelf(key) && mine.find(key) && isInside(other, mine) {
			return true
		}
	}
	return false
}
