// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// HasFinalizer reports whether the object has the finalizer of the engine, from any client:
// then its deletion waits for Cleanup. Before the first Claim of an object it is true only if an
// admission policy has put it there, or another step needs it.
func (r *Request[T]) HasFinalizer() bool {
	return r.finalizer != "" && slices.Contains(r.Snapshot().GetFinalizers(), r.finalizer)
}

// Finalizers returns the finalizer of the engine, empty without one, and the finalizers of other
// controllers that the object has.
func (r *Request[T]) Finalizers() (own string, others []string) {
	others = slices.DeleteFunc(slices.Clone(r.Snapshot().GetFinalizers()), func(name string) bool {
		return name == r.finalizer || slices.Contains(r.retired, name)
	})
	return r.finalizer, others
}

// RetiredRemedy returns what the authors of the operator can do about the finalizers that the engine may
// have put on the object under a former name, because they are of its domain; empty if none is. They
// may belong to another engine of the operator as well.
func (r *Request[T]) RetiredRemedy(finalizers []string) string {
	domains := []string{domainOf(r.finalizer), r.group}
	former := slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool {
		domain := domainOf(name)
		return name == r.finalizer || domain == "" || !slices.Contains(domains, domain)
	})
	if len(former) == 0 {
		return ""
	}
	return "if an older version of this operator has put " + track.Quote(former) + " there, add it to step.Options.RetiredFinalizers"
}

// domainOf returns the domain of a finalizer, empty if it has none.
func domainOf(finalizer string) string {
	domain, _, ok := strings.Cut(finalizer, "/")
	if !ok {
		return ""
	}
	return domain
}

// WasClaimed reports whether the engine has put its finalizer on the object for the claim of a
// Claim, in an earlier reconcile. The managed fields of the object show that, also to a process
// that has not seen the claim, and after another client has removed all annotations that the claim
// has written.
//
//   - It is false if an admission policy, or another client, has put the finalizer there, and if
//     that has been removed.
//   - It is false if the engine has another step with something to clean up, because then the
//     finalizer shows nothing of the claim.
//   - It is false if the cache drops managed fields, except in Cleanup of an engine with
//     Options.APIReader.
func (r *Request[T]) WasClaimed() bool {
	if !r.claimsOnly || !r.HasFinalizer() {
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
		case p.Claim != nil:
			claimers++
		case p.Cleanup != nil:
			return false
		}
	}
	return claimers == 1
}
