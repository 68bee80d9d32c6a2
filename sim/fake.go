// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/fakes"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// A Fake is the home of a fake of an external system that the user has written: there is one
// instance in each run, made when it is first asked for. It survives crashes of the operator, as the
// real system would, and is gone with the run.
//
//	var dns = sim.NewFake("dns", func() *fakeDNS { return &fakeDNS{records: map[string]string{}} })
//
// The operator gets the instance with dns.Of(p), the script with dns.Of(w), and a player with
// dns.Of(s). The simulator sees the calls of the operator only if they go through [Process.Call] or
// [Process.HTTP]. A change of a fake calls no player: one that waits for it uses [player.Stage.After].
//
// If *fakeDNS is a [Lister], its resources take part in the comparison of worlds and in the oracles
// about external systems, like those of [External]. The System of its calls must be the name of the
// fake then.
type Fake[T any] struct {
	name string
	make func() T
}

// NewFake returns the home of the fake of a system. The name must be another one than those of
// Workload.Externals and of other fakes.
func NewFake[T any](name string, make func() T) *Fake[T] { return &Fake[T]{name, make} }

// A Lister is a fake that lists its resources.
type Lister interface {
	// Resources returns the resources of the fake, in any order. It is called in between calls of
	// the operator and the script, and must not wait.
	Resources() []OwnedResource
}

// An OwnedResource is a resource of a fake, and the object for which it was created, if that is
// known.
type OwnedResource struct {
	Resource
	Owner types.UID
}

// RunOf is a [Process], a [World] or a [player.Stage]: what belongs to one run.
type RunOf interface{ fakes.OfRun }

var (
	_ RunOf = &Process{}
	_ RunOf = &World{}
	_ RunOf = &player.Stage{}
)

// member makes what embeds it a [RunOf].
type member = fakes.Member

// Of returns the instance of a run. Any goroutine may call it. A stage that belongs to no run, which
// only a program makes that calls players by itself, has no fakes, and Of panics.
func (f *Fake[T]) Of(of RunOf) T {
	r := fakes.Of(of)
	if r == nil {
		panic(fmt.Sprintf("sim: there is no run to which the fake %q belongs", f.name))
	}
	instance, ok := r.Instance(f.name, func() (any, external.System) {
		made := f.make()
		if lister, ok := any(made).(Lister); ok {
			return made, &listed{lister: lister, created: map[types.UID]map[string]bool{}}
		}
		return made, nil
	}).(T)
	if !ok {
		panic(fmt.Sprintf("sim: two fakes have the name %q", f.name))
	}
	return instance
}

// listed is a fake as the oracles see it.
type listed struct {
	lister  Lister
	created map[types.UID]map[string]bool // ids of what was seen, by owner
}

var _ external.System = &listed{}

// Inventory returns the resources, ordered by id.
func (l *listed) Inventory() []external.Resource {
	byID := map[string]external.Resource{}
	for _, r := range l.lister.Resources() {
		r.Resource = r.clone()
		byID[r.ID] = external.Resource{ID: r.ID, Name: r.Name, Owner: r.Owner, Tags: r.Tags, Spec: r.Spec}
	}
	var list []external.Resource
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		list = append(list, byID[id])
	}
	return list
}

// Created returns how many resources of an object were seen so far: it is called after each call that
// has an effect, so that it sees each of them.
func (l *listed) Created(owner types.UID) int {
	for _, r := range l.lister.Resources() {
		if l.created[r.Owner] == nil {
			l.created[r.Owner] = map[string]bool{}
		}
		l.created[r.Owner][r.ID] = true
	}
	return len(l.created[owner])
}

// MintsIDs reports whether ids differ between runs. Those of a fake are compared as they are.
func (l *listed) MintsIDs() bool { return false }

// Drift does nothing: only the user knows how to change a fake.
func (l *listed) Drift(types.UID) (id string, ok bool) { return "", false }
