// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Errors of an external system. Test for them with errors.Is.
var (
	ErrNotFound    = errors.New("no such resource")
	ErrExists      = errors.New("the name is taken")
	ErrThrottled   = errors.New("too many requests")
	ErrUnavailable = errors.New("the service is unavailable")
	ErrLost        = errors.New("the connection was lost before the answer came")
)

// Identity says how an external system tells resources apart, which decides how an operator can find out after a crash whether it has
// created something already.
type Identity int

// The identities of external systems, the easiest first.
const (
	IdentityName  Identity = iota + 1 // the client chooses the name, which is the id; Create of a name that is taken fails with ErrExists
	IdentityToken                     // ids are minted; Create with the token of an earlier Create returns what that one created
	IdentityTag                       // ids are minted; a resource can be found by its tags
	IdentityNone                      // ids are minted and there is nothing to find a resource by
)

// External describes a fake system outside the cluster: a service with an inventory of resources.
type External struct {
	Name     string   // what the operator asks for in Process.External
	Identity Identity // must be set

	// ReadLag is how many changes List and FindByTag are behind. A change becomes visible to them after so many later ones, or after a minute.
	ReadLag int

	// Latency is how long each call takes, in virtual time.
	Latency time.Duration

	// Resources are in the inventory from the start, and belong to somebody else.
	Resources []Resource
}

// A Resource is one entry in the inventory of an external system.
type Resource struct {
	ID   string
	Name string
	Tags map[string]string
	Spec map[string]string
}

func (r Resource) clone() Resource {
	r.Tags, r.Spec = maps.Clone(r.Tags), maps.Clone(r.Spec)
	return r
}

// Creation is the argument of [ExternalClient.Create].
type Creation struct {
	Name  string            // the id where the client chooses it
	Token string            // the idempotency token where the system knows them
	Tags  map[string]string // what the resource can be found by, where the system has tags
	Spec  map[string]string

	// Owner is the UID of the object for which the resource is created. The system itself does not see it: it is for the oracles, which
	// count creations by owner and look for what is left over.
	Owner types.UID
}

// ExternalClient is the connection of one process to one external system. Its calls can be hit by faults, and fail once the process has
// crashed.
type ExternalClient struct {
	process *Process
	system  *inventory
}

// Create adds a resource. See [Identity] for what it does when it has been called before.
func (c *ExternalClient) Create(ctx context.Context, creation Creation) (Resource, error) {
	call := c.call("create", true, creation.Owner, creation.Name)
	return callFor(ctx, c, call, func() (Resource, error) { return c.system.create(creation) })
}

// Get returns the resource with an id, or ErrNotFound. It is never behind.
func (c *ExternalClient) Get(ctx context.Context, id string) (Resource, error) {
	return callFor(ctx, c, c.call("get", false, "", id), func() (Resource, error) { return c.system.get(id) })
}

// List returns all resources, ordered by id.
func (c *ExternalClient) List(ctx context.Context) ([]Resource, error) {
	return callFor(ctx, c, c.call("list", false, "", ""), func() ([]Resource, error) {
		return c.system.find(func(Resource) bool { return true }), nil
	})
}

// FindByTag returns the resources that have a tag with this value, ordered by id.
func (c *ExternalClient) FindByTag(ctx context.Context, key, value string) ([]Resource, error) {
	return callFor(ctx, c, c.call("find", false, "", key+"="+value), func() ([]Resource, error) {
		if c.system.Identity == IdentityNone {
			return nil, fmt.Errorf("external system %q has no tags to search by", c.system.Name)
		}
		return c.system.find(func(r Resource) bool { return r.Tags[key] == value }), nil
	})
}

// Update replaces the spec of the resource with an id, or returns ErrNotFound.
func (c *ExternalClient) Update(ctx context.Context, id string, spec map[string]string) error {
	_, err := callFor(ctx, c, c.call("update", true, c.system.owner(id), id), func() (Resource, error) { return Resource{}, c.system.update(id, spec) })
	return err
}

// Delete removes the resource with an id, or returns ErrNotFound.
func (c *ExternalClient) Delete(ctx context.Context, id string) error {
	_, err := callFor(ctx, c, c.call("delete", true, c.system.owner(id), id), func() (Resource, error) { return Resource{}, c.system.delete(id) })
	return err
}

func (c *ExternalClient) call(verb string, mutates bool, owner types.UID, what string) Call {
	return Call{System: c.system.Name, Verb: verb, Mutates: mutates, Owner: owner, What: what, latency: c.system.Latency}
}

// callFor makes one call, with the answer that a function computes.
func callFor[T any](ctx context.Context, c *ExternalClient, call Call, answer func() (T, error)) (T, error) {
	var result T
	err := c.process.Call(ctx, call, func() error {
		r, err := answer()
		if err != nil {
			return err
		}
		result = r
		return nil
	})
	if err != nil {
		var none T
		return none, fmt.Errorf("%s %s: %w", call.Verb, call.System, err)
	}
	return result, nil
}

// inventory is the state of an external system in one run. Only the driver and calls that it has admitted use it, one at a time.
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

func (s *inventory) owner(id string) types.UID {
	if e, ok := s.resources[id]; ok {
		return e.owner
	}
	return ""
}

// changed notes what a resource was before a change, for the reads that lag.
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
