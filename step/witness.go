// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// HadFinalizer reports whether the object had the finalizer of the engine when the reconcile began,
// whoever has put it there: then its deletion waits for Cleanup.
func (r *Request[T]) HadFinalizer() bool {
	return r.finalizer != "" && slices.Contains(r.Snapshot().GetFinalizers(), r.finalizer)
}

// WasClaimed reports whether the engine has put its finalizer on the object for the claim of a
// [Claimer]. The managed fields of the object show that, also to a process that has not seen the
// claim, and after another client has removed all annotations that the claim has written.
//
//   - It is false if an admission policy, or another client, has put the finalizer there, and if
//     that has been removed.
//   - It is false if the engine has another step with something to clean up, because then the
//     finalizer shows nothing of the claim.
//   - It is false if the cache drops managed fields, except in Cleanup of an engine with
//     Options.APIReader.
func (r *Request[T]) WasClaimed() bool {
	if !r.claimsOnly || !r.HadFinalizer() {
		return false
	}
	managed := r.managed
	if managed == nil {
		managed = r.Snapshot().GetManagedFields()
	}
	return slices.ContainsFunc(managed, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == r.FieldOwner() && e.Subresource == "" && ownsFinalizer(e.FieldsV1, r.finalizer)
	})
}

// ownsFinalizer reports whether a set of managed fields has a finalizer.
func ownsFinalizer(fields *metav1.FieldsV1, finalizer string) bool {
	if fields == nil {
		return false
	}
	set := fieldpath.NewSet()
	if set.FromJSON(bytes.NewReader(fields.GetRawBytes())) != nil {
		return false
	}
	return set.Has(fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface(finalizer)))
}

// onlyClaims reports whether one step claims, and no other has something to clean up: then a
// finalizer is there because of the claim.
func onlyClaims[T client.Object](parts []*part[T]) bool {
	claimers := 0
	for _, p := range parts {
		switch {
		case p.claimer != nil:
			claimers++
		case p.cleaner != nil:
			return false
		}
	}
	return claimers == 1
}
