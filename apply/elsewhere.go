// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Place is where [ChildrenIn] keeps the set of one object.
type Place struct {
	Applier *Applier
	Name    client.ObjectKey // of the set and its record
	// Every is how often drift is looked for when all objects are ready, 10 minutes by default:
	// nothing reports it. While they are not, it is at most 10 seconds.
	Every time.Duration
}

// ChildrenIn returns a step like that of [Children], for objects in another cluster, and for kinds
// that are known at run time only: an [Applier] keeps the set, under a name that differs for each
// object. The record of the set has the UID of the object, so that objects of two clusters which
// choose one name do not share a set. A place that changes leaves the set where it was.
//
// When the object is deleted, the step deletes its set. As long as the other cluster does not
// answer, the object stays; the error says so. Place is also called then: it must not depend on
// what is deleted first. With --cascade=orphan, the step deletes the record only.
//
// The record has a finalizer, so that it does not go before its set. If its namespace is deleted and
// the object is not, an annotation of the object takes the names over.
func ChildrenIn[T client.Object](name string, place func(ctx context.Context, req *step.Request[T]) (Place, error),
	want func(ctx context.Context, req *step.Request[T], want *Set) error) step.Step[T] {
	e := &elsewhere[T]{&children[T]{settings: newSettings(name, nil), want: want, orphaning: newOrphaning()}, place}
	return step.Step[T]{
		Name: name, Do: e.do, Cleanup: e.cleanUp, Conditions: e.conditions(), Plan: e.plan,
		Watches: func() []step.Watch { return watchesOfOwners[T](e.orphaning) }, // nothing of another cluster is watched
	}
}

type elsewhere[T client.Object] struct {
	*children[T]
	place func(ctx context.Context, req *step.Request[T]) (Place, error)
}

// everyDefault is how often drift is looked for by default.
const everyDefault = 10 * time.Minute

func (e *elsewhere[T]) do(ctx context.Context, req *step.Request[T]) error {
	place, by, err := e.at(ctx, req)
	if err != nil {
		return err
	}
	var set Set
	if err := e.want(ctx, req, &set); err != nil {
		return err
	}
	k, err := place.Applier.keeper(ctx, place.Name, by, true)
	if err != nil {
		e.mark(req, &result{err: err})
		return err
	}
	r := k.keep(ctx, &set)
	e.mark(req, r)
	if run := journal.RunFromContext(ctx); run != nil && len(r.states) > 0 {
		run.Note(ctx, journal.Kept{Step: e.settings.name, Children: r.children(req.Classify)})
	}
	every := cmp.Or(place.Every, everyDefault)
	switch status, err := statusOf(r); {
	case err != nil:
		return err
	case status.Lacks != "":
		return ctrlkit.Poll(status.Lacks, min(every, goneEvery))
	}
	return ctrlkit.RequeueWithin(every)
}

// plan is for [PlanFor].
func (e *elsewhere[T]) plan(ctx context.Context, req *step.Request[T]) (*Plan, error) {
	place, by, err := e.at(ctx, req)
	if err != nil {
		return nil, err
	}
	var set Set
	if err := e.want(ctx, req, &set); err != nil {
		return nil, err
	}
	k, err := place.Applier.keeper(ctx, place.Name, by, false)
	if err != nil {
		return nil, err
	}
	return planOf(ctx, k, &set)
}

// cleanUp deletes the set of an object.
func (e *elsewhere[T]) cleanUp(ctx context.Context, req *step.Request[T]) error {
	place, by, err := e.at(ctx, req)
	if err != nil {
		return err
	}
	if stay, wait := keepsChildren(e.orphaning, req); wait != nil {
		return wait
	} else if stay {
		return place.Applier.forget(ctx, place.Name, by)
	}
	switch waits, err := place.Applier.delete(ctx, place.Name, by); {
	case err != nil:
		return err
	case waits != "":
		return ctrlkit.Poll(waits, goneEvery)
	}
	return nil
}

func (e *elsewhere[T]) at(ctx context.Context, req *step.Request[T]) (Place, claimant, error) {
	place, err := e.place(ctx, req)
	switch {
	case err != nil:
		return place, claimant{}, fmt.Errorf("finding where the objects of %q are: %w", e.settings.name, err)
	case place.Applier == nil:
		return place, claimant{}, failure.Terminal(errors.New("the place has no Applier"), reasonWrongSet, "this is a bug in the operator: return one")
	}
	gvk, err := req.Client.GroupVersionKindFor(req.Object)
	if err != nil {
		return place, claimant{}, fmt.Errorf("kind of %T: %w", req.Object, err)
	}
	owner := identity{owner: gvk.GroupKind(), key: client.ObjectKeyFromObject(req.Object)}
	key := e.settings.notes(trackedPrefix, req.FieldOwner())[0].key
	return place, claimant{
		text: owner.annotation(), uid: string(req.Object.GetUID()), event: req.Event, noted: req.Object.GetAnnotations()[key],
		note: func(ctx context.Context, value string) error { return req.Annotate(ctx, key, value) },
	}, nil
}
