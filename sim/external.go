// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
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
