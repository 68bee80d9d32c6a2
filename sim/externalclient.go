// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

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
