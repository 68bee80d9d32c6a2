// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An Applier applies sets that no object owns, of any kinds, with any client: for installers, for
// loops that read from Git, and for other clusters. A set has a name, and a ConfigMap of that name
// is its record: it has the names of all objects of the set, so that what has left it is found
// again.
//
//	installer := &apply.Applier{Client: c, FieldOwner: "installer"}
//	var want apply.Set
//	want.Add(objects...)
//	status, err := installer.Apply(ctx, client.ObjectKey{Namespace: "platform", Name: "monitoring"}, &want)
//
// The rules of [Children] hold: what is as it was applied costs no write, objects of other owners
// are left alone, and [Policy] and [Wave] are options of [Set.Add]. No object gets an owner
// reference, and no kind has to be declared. An object without a namespace is in that of the
// record. A kind that the API server does not have is waited for.
//
// An Applier is safe for concurrent use. It must not be copied or changed after its first use.
type Applier struct {
	// Client reads and writes. The client of a manager reads typed objects from its cache; one of
	// [client.New] has none. Its role needs get, create, patch and delete for the kinds of the sets
	// and for ConfigMaps.
	Client client.Client
	// FieldOwner is the field owner of what is applied, and a part of the identity of each set: the
	// sets of two appliers with different ones never share an object, nor a record.
	FieldOwner string
	// APIReader reads past the cache of Client. Nil stands for Client.
	APIReader client.Reader
	// PruneLimit is that of the option [PruneLimit]. Zero stands for 20.
	PruneLimit int
	// Migrate are the field managers of the option [Migrate].
	Migrate []string

	once   sync.Once
	states *states
}

// A Status is what an [Applier] has made of a set.
type Status struct {
	// Objects are the objects of the set, in the order in which they were added.
	Objects []journal.Child
	// Pruned are the objects that were deleted because they have left the set.
	Pruned []Ref
	// Lacks says what the set lacks: "1 of 3 ready: Deployment shop/web: 1 of 2 replicas updated". It
	// is empty if all objects are ready.
	Lacks string
}

// Apply makes the objects of a set as they should be, and deletes those that have left it. It
// changes once what can be changed now, and does not wait: call it again until Status.Lacks is
// empty, and from time to time to repair drift. An error comes with the status of the objects that
// it does not concern, if they were reached. It is classified by package failure: a terminal one,
// such as an object of another owner, needs a change of the set or of the cluster.
func (a *Applier) Apply(ctx context.Context, name client.ObjectKey, want *Set) (*Status, error) {
	k, err := a.keeper(ctx, name, claimant{}, true)
	if err != nil {
		return nil, err
	}
	return statusOf(k.keep(ctx, want))
}

// Plan returns what [Applier.Apply] would do. It writes nothing: see [PlanFor].
func (a *Applier) Plan(ctx context.Context, name client.ObjectKey, want *Set) (*Plan, error) {
	k, err := a.keeper(ctx, name, claimant{}, false)
	if err != nil {
		return nil, err
	}
	return planOf(ctx, k, want)
}

// Delete deletes all objects of a set, wave by wave, the last one first, and then its record. What
// has the policy [Keep] stays. It does not wait: call it again until what it waits for is empty. A
// set that has no record has no objects.
func (a *Applier) Delete(ctx context.Context, name client.ObjectKey) (waits string, err error) {
	return a.delete(ctx, name, claimant{})
}

func (a *Applier) delete(ctx context.Context, name client.ObjectKey, by claimant) (waits string, err error) {
	k, err := a.keeper(ctx, name, by, false)
	if err == nil {
		err = k.readTracked(ctx)
	}
	if err != nil {
		return "", err
	}
	if waits, err = k.cleanUp(ctx); err != nil || waits != "" {
		return waits, err
	}
	return "", deleteRecord(ctx, k, k.owner.(*corev1.ConfigMap)) //nolint:errcheck // made by keeper
}

// forget deletes the record of a set, and leaves its objects.
func (a *Applier) forget(ctx context.Context, name client.ObjectKey, by claimant) error {
	k, err := a.keeper(ctx, name, by, false)
	if err != nil {
		return err
	}
	return deleteRecord(ctx, k, k.owner.(*corev1.ConfigMap)) //nolint:errcheck // made by keeper
}

func statusOf(r *result) (*Status, error) {
	s := &Status{Objects: r.children(failure.Classify), Pruned: r.pruned, Lacks: r.lacks()}
	if r.err == nil && r.limited != nil {
		return s, failure.Terminal(r.limited, reasonPruneLimit, "correct what the set is made from, delete the objects yourself, or raise the limit")
	}
	return s, r.err
}

// setOfApplier is the name of all sets of appliers, in their identity.
const setOfApplier = "set"

// keeper returns what keeps a set. Its owner is the record, which is not in the cluster if it is
// not there and not to be created.
func (a *Applier) keeper(ctx context.Context, name client.ObjectKey, by claimant, create bool) (*keeper, error) {
	if name.Name == "" || name.Namespace == "" || a.FieldOwner == "" || a.Client == nil {
		return nil, failure.Terminal(errors.New("an Applier needs a Client and a FieldOwner, and its sets a name and a namespace"), reasonWrongSet, "set them")
	}
	a.once.Do(func() { a.states = newStates() })
	s := &settings{name: setOfApplier, ordered: true, pruneLimit: a.PruneLimit, migrate: a.Migrate, anyKind: true}
	if s.pruneLimit == 0 {
		s.pruneLimit = defaultPruneLimit
	}
	kind := configMapKind
	k := &keeper{settings: s, client: a.Client, live: a.APIReader, manager: a.FieldOwner, ownerKind: kind, event: by.event,
		identity: identity{kind.GroupKind(), name, a.FieldOwner, setOfApplier}, states: a.states, dependOn: func(func() uint64) {}}
	if k.live == nil {
		k.live = a.Client
	}
	k.label = k.identity.label()
	k.labels = []string{k.label}
	record, err := readRecord(ctx, k, by, create)
	if err != nil {
		return nil, err
	}
	k.owner = record
	k.remember = func(ctx context.Context, annotation, value string) error {
		before := record.DeepCopy()
		setAnnotation(record, annotation, value)
		if err := a.Client.Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(a.FieldOwner)); err != nil {
			return fmt.Errorf("writing the record %s: %w", recordRef(name), err)
		}
		return nil
	}
	return k, nil
}

func setAnnotation(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	if annotations[key] = value; value == "" {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
}
