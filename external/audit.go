// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Resource is one in an external system, as a [Lister] returns it. Its system, Scope and ID identify
// it together.
type Resource struct {
	// Scope is what of the system the ID is unique in, as Options.Scope says of an object: an account or
	// a project. Empty if IDs are unique in the system.
	Scope string
	ID    string
	Owner string // what [OwnerOf] returned when it was created; empty if none is stored

	// Labels are those of the object that [Import] makes of it, where the list shows them, such as in tags:
	// "ctrlkit import -l" then reads only what it selects. Nil if they are not known yet.
	Labels map[string]string
}

// place is what identifies a resource within its system.
type place struct{ scope, id string }

func (r *Resource) place() place { return place{r.Scope, r.ID} }

// comparePlaces orders resources by their scopes and ids.
func comparePlaces(a, b Resource) int {
	return cmp.Or(strings.Compare(a.Scope, b.Scope), strings.Compare(a.ID, b.ID))
}

// A Lister lists the resources of an external system. A [Client] implements it where the system
// allows that.
type Lister interface {
	// List returns all resources that the operator may have created. It may include others.
	List(ctx context.Context) ([]Resource, error)
}

// A Holder is an object whose resource is in a system, or will be.
type Holder struct {
	Object client.Object
	// Scope is what Options.Scope returns for the object: in which account or project its resource is.
	Scope string
}

// Audit compares an external system with the objects of the cluster. Orphans are resources whose owner
// is not among the objects, or has another resource: they are leaks, unless their owner is in another
// cluster. Missing are objects whose resource is gone: the operator creates it again, if it runs and
// the policies of the objects allow that. Neither the state of an
// operator nor its conditions are used, so that it also shows what an operator does not know.
//
//   - Objects returns all objects whose resources are in the system: of all kinds that the list shows
//     resources of, and of all namespaces and clusters that use it. It must read them from the API
//     server: a stale cache shows owners that are gone, and lacks new ones.
//   - The system may be in use meanwhile. Resources are listed before the objects and once more
//     after them, and a resource is an orphan if both lists have it. An object that is just being
//     created may be reported as missing.
//   - A resource without an owner is never an orphan: it may be anything.
func Audit(ctx context.Context, system Lister, objects func(ctx context.Context) ([]Holder, error)) (orphans []Resource, missing []client.Object, err error) {
	before, err := system.List(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the resources: %w", err)
	}
	all, err := objects(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the objects: %w", err)
	}
	after, err := system.List(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the resources again: %w", err)
	}
	listed, owners := make(map[place]bool, len(after)), make(map[string]place, len(all))
	for _, r := range after {
		listed[r.place()] = true
	}
	for _, h := range all {
		at := place{h.Scope, IDOf(h.Object)}
		owners[OwnerOf(h.Object)] = at
		if at.id != "" && !listed[at] && h.Object.GetDeletionTimestamp().IsZero() {
			missing = append(missing, h.Object)
		}
	}
	for _, r := range before {
		at, known := owners[r.Owner]
		if r.Owner == "" || !listed[r.place()] || known && (at.id == "" || at == r.place()) {
			continue
		}
		delete(listed, r.place()) // a list may have it twice
		orphans = append(orphans, r)
	}
	return orphans, missing, nil
}
