// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

// Errors of an external system. Test for them with errors.Is.
var (
	ErrNotFound    = errors.New("no such resource")
	ErrExists      = errors.New("the name is taken")
	ErrThrottled   = external.ErrThrottled
	ErrUnavailable = external.ErrUnavailable
	ErrLost        = external.ErrLost
)

// Identity says by what an external system identifies resources, which decides how an operator can
// find out after a crash whether it has created something already.
type Identity int

// The identities of external systems, the easiest first.
const (
	// IdentityName: the client chooses the name, which is the id. Create of a name that is taken
	// fails with ErrExists.
	IdentityName Identity = iota + 1

	// IdentityToken: ids are minted. Create with the token of an earlier Create returns what that
	// one created.
	IdentityToken

	IdentityTag  // ids are minted; a resource can be found by its tags
	IdentityNone // ids are minted and there is nothing to find a resource by
)

// External describes a fake system outside the cluster: a service with an inventory of resources.
type External struct {
	Name     string   // what the operator asks for in Process.External
	Identity Identity // must be set

	// ReadLag is how many changes the answers of List and FindByTag are stale. A change becomes
	// visible to them after so many later ones, or after a minute.
	ReadLag int

	// Latency is how long each call takes, in virtual time.
	Latency time.Duration

	// Resources are in the inventory from the start, and belong to none of the objects of the
	// cluster.
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

	// Owner is the UID of the object for which the resource is created. The system itself does not
	// see it: it is for the oracles, which count creations by owner and look for orphans.
	Owner types.UID
}

// ExternalClient is the connection of one process to one external system. Its calls can be hit by
// faults, and fail once the process has crashed.
type ExternalClient struct {
	process *Process
	system  *inventory
}

// Create adds a resource. See [Identity] for what it does when it has been called before.
func (c *ExternalClient) Create(ctx context.Context, creation Creation) (Resource, error) {
	call := c.call("create", true, creation.Owner, creation.Name)
	return callFor(ctx, c, call, func() (Resource, error) { return c.system.create(creation) })
}

// Get returns the resource with an id, or ErrNotFound. It is never stale.
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
