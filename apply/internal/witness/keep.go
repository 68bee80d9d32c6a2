// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keep returns a copy of the entries that [Covers] needs: what the manager has applied, and the
// entries of others that own something in a list or map that it has as a whole. It returns nil if
// the manager has applied nothing. The entries share their fields with managed.
func Keep(managed []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	own := entryOf(managed, manager)
	if own == nil {
		return nil
	}
	kept := []metav1.ManagedFieldsEntry{*own}
	for i := range managed {
		e := &managed[i]
		if e == own || e.APIVersion != own.APIVersion || e.FieldsV1 == nil || own.FieldsV1 == nil {
			continue
		}
		if isInside(reader{data: e.FieldsV1.GetRawBytes()}, reader{data: own.FieldsV1.GetRawBytes()}) {
			kept = append(kept, *e)
		}
	}
	return kept
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
