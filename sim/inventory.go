// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// inventory is the state of an external system in one run. Only the driver and calls that it has
// admitted use it, one at a time.
type inventory struct {
	External
	resources map[string]*entry
	tokens    map[string]string // token to id
	minted    int
	changes   []change
	now       func() time.Time

	created map[types.UID]int // creations so far, by owner
}

type entry struct {
	Resource
	owner types.UID
}

// change is one that reads which lag may not have seen yet.
type change struct {
	at     time.Time
	id     string
	before *Resource // nil: the resource was not there
}

// readLagEnds is after how long a change is visible to every read.
const readLagEnds = time.Minute

func newInventory(e External, now func() time.Time) *inventory {
	s := &inventory{External: e, resources: map[string]*entry{}, tokens: map[string]string{}, now: now, created: map[types.UID]int{}}
	for _, r := range e.Resources {
		s.resources[r.ID] = &entry{Resource: r.clone()}
	}
	return s
}

func (s *inventory) create(c Creation) (Resource, error) {
	id := c.Name
	switch s.Identity {
	case IdentityName:
		if id == "" {
			return Resource{}, fmt.Errorf("external system %q wants a name", s.Name)
		}
		if _, taken := s.resources[id]; taken {
			return Resource{}, fmt.Errorf("%w: %s", ErrExists, id)
		}
	case IdentityToken:
		if known, ok := s.tokens[c.Token]; ok && c.Token != "" {
			if e, ok := s.resources[known]; ok {
				return e.clone(), nil
			}
		}
		id = s.mint()
		s.tokens[c.Token] = id
	default:
		id = s.mint()
	}
	s.changed(id)
	r := Resource{ID: id, Name: c.Name, Tags: maps.Clone(c.Tags), Spec: maps.Clone(c.Spec)}
	s.resources[id] = &entry{Resource: r, owner: c.Owner}
	s.created[c.Owner]++
	return r.clone(), nil
}

func (s *inventory) mint() string {
	s.minted++
	return s.Name + "-" + strconv.Itoa(s.minted)
}

func (s *inventory) get(id string) (Resource, error) {
	if e, ok := s.resources[id]; ok {
		return e.clone(), nil
	}
	return Resource{}, fmt.Errorf("%w: %s", ErrNotFound, id)
}

func (s *inventory) update(id string, spec map[string]string) error {
	e, ok := s.resources[id]
	if !ok {
		return fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	s.changed(id)
	e.Spec = maps.Clone(spec)
	return nil
}

func (s *inventory) delete(id string) error {
	if _, ok := s.resources[id]; !ok {
		return fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	s.changed(id)
	delete(s.resources, id)
	return nil
}

// remove removes a resource as another client would: the one that takes its place is not counted.
func (s *inventory) remove(id string) {
	owner := s.owner(id)
	if s.delete(id) == nil && owner != "" {
		s.created[owner]--
	}
}

func (s *inventory) owner(id string) types.UID {
	if e, ok := s.resources[id]; ok {
		return e.owner
	}
	return ""
}

// changed notes what a resource was before a change, for the reads that are stale.
func (s *inventory) changed(id string) {
	if s.ReadLag == 0 {
		return
	}
	c := change{at: s.now(), id: id}
	if e, ok := s.resources[id]; ok {
		before := e.clone()
		c.before = &before
	}
	s.changes = append(s.changes, c)
}

// find returns the resources that a lagging read sees and that match, ordered by id.
func (s *inventory) find(match func(Resource) bool) []Resource {
	seen := map[string]Resource{}
	for id, e := range s.resources {
		seen[id] = e.clone()
	}
	behind := s.changes[max(0, len(s.changes)-s.ReadLag):]
	for _, c := range slices.Backward(behind) {
		switch {
		case s.now().Sub(c.at) >= readLagEnds:
		case c.before == nil:
			delete(seen, c.id)
		default:
			seen[c.id] = *c.before
		}
	}
	var found []Resource
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		if match(seen[id]) {
			found = append(found, seen[id].clone())
		}
	}
	return found
}

// sorted returns the resources ordered by id.
func (s *inventory) sorted() []*entry {
	list := make([]*entry, 0, len(s.resources))
	for _, id := range slices.Sorted(maps.Keys(s.resources)) {
		list = append(list, s.resources[id])
	}
	return list
}

var _ external.System = &inventory{}

// Inventory returns the resources, ordered by id.
func (s *inventory) Inventory() []external.Resource {
	var list []external.Resource
	for _, e := range s.sorted() {
		r := e.clone()
		list = append(list, external.Resource{ID: r.ID, Name: r.Name, Owner: e.owner, Tags: r.Tags, Spec: r.Spec})
	}
	return list
}

// Created returns how many resources were created for an object so far.
func (s *inventory) Created(owner types.UID) int { return s.created[owner] }

// MintsIDs reports whether ids of resources differ between runs.
func (s *inventory) MintsIDs() bool { return s.Identity != IdentityName }

// Drift changes a resource as another client would.
func (s *inventory) Drift(owner types.UID) (id string, ok bool) {
	for _, e := range s.sorted() {
		if e.owner == "" || len(e.Spec) == 0 || owner != "" && e.owner != owner {
			continue
		}
		key := slices.Sorted(maps.Keys(e.Spec))[0]
		spec := maps.Clone(e.Spec)
		spec[key] += " (drifted)"
		return e.ID, s.update(e.ID, spec) == nil
	}
	return "", false
}
