// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Resource is one in an external system, as a [Lister] returns it.
type Resource struct {
	ID    string
	Owner string // what [OwnerOf] returned when it was created; empty if none is stored
}

// A Lister lists the resources of an external system. A [Client] implements it where the system
// allows that.
type Lister interface {
	// List returns all resources that the operator may have created. It may include others.
	List(ctx context.Context) ([]Resource, error)
}

// Discrepancies are what [Audit] has found.
type Discrepancies[T client.Object] struct {
	// Orphans are resources whose owner is gone, or has another resource. They are leaks.
	Orphans []Resource

	// Missing are objects whose resource is gone. The operator creates it again, if it runs and the
	// policies of the objects allow that.
	Missing []T
}

// Audit compares an external system with the objects of the cluster. Neither the state of an
// operator nor its conditions are used, so that it also shows what an operator does not know.
//
//   - Objects returns all objects of the kinds whose resources are in the system, of all namespaces
//     and clusters that use it. It must read them from the API server: a stale cache shows owners
//     that are gone, and lacks new ones.
//   - The system may be in use meanwhile. Resources are listed before the objects and once more
//     after them, and a resource is an orphan if both lists have it. An object that is just being
//     created may be reported as missing.
//   - A resource without an owner is never an orphan: it may be anything.
func Audit[T client.Object](ctx context.Context, system Lister, objects func(ctx context.Context) ([]T, error)) (Discrepancies[T], error) {
	before, err := system.List(ctx)
	if err != nil {
		return Discrepancies[T]{}, fmt.Errorf("listing the resources: %w", err)
	}
	all, err := objects(ctx)
	if err != nil {
		return Discrepancies[T]{}, fmt.Errorf("listing the objects: %w", err)
	}
	after, err := system.List(ctx)
	if err != nil {
		return Discrepancies[T]{}, fmt.Errorf("listing the resources again: %w", err)
	}
	listed, owners := make(map[string]bool, len(after)), make(map[string]T, len(all))
	for _, r := range after {
		listed[r.ID] = true
	}
	found := Discrepancies[T]{}
	for _, obj := range all {
		owners[OwnerOf(obj)] = obj
		if id := IDOf(obj); id != "" && !listed[id] && obj.GetDeletionTimestamp().IsZero() {
			found.Missing = append(found.Missing, obj)
		}
	}
	for _, r := range before {
		owner, ok := owners[r.Owner]
		if r.Owner == "" || !listed[r.ID] || slices.Contains(found.Orphans, r) || ok && (IDOf(owner) == r.ID || IDOf(owner) == "") {
			continue
		}
		found.Orphans = append(found.Orphans, r)
	}
	return found, nil
}
