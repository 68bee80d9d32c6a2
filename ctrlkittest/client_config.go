// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// A ClientConfig describes a client, and the system that it is tested with. Identity, Connect and
// New are required.
type ClientConfig[T client.Object] struct {
	// Identity is what the operator passes to [external.New].
	Identity external.Identity[T]

	// Connect returns a new client for the system of an object. The kit closes it if it is an
	// io.Closer.
	Connect func(ctx context.Context, obj T) (external.Client[T], error)

	// New returns an object with a valid spec and a UID, another one each time. Its metadata and
	// its spec are those of an object in a cluster; no client writes it.
	New func() T

	// StoresOwner is that of [external.Options].
	StoresOwner bool

	// Drift changes the spec of an object so that its resource differs, in a way that Update can
	// repair.
	Drift func(obj T)

	// Refuse changes the spec of an object so that the system refuses to create its resource.
	Refuse func(obj T)

	// Names are the rules of the system, if Identity makes names with [external.NameRules.NameOf].
	// MaxLength is set.
	Names external.NameRules

	// Publish, if Connect reads what the client itself has returned, writes the details of Create
	// and of Observe where Connect finds them, as the operator does. The kit calls it after each of
	// both which has some, with all that it knows of the object.
	Publish func(ctx context.Context, obj T, details map[string][]byte) error

	// Snapshot returns all that is in the system, as a text that is the same as long as nothing
	// changes. Without it, the kit compares what Observe returns.
	Snapshot func(ctx context.Context) (string, error)

	// Unknown is an id that no resource has: "ctrlkittest-unknown" if it is empty.
	Unknown string

	// Canary is a secret that the client knows: the password that it connects with, or one that it
	// returns in Observation.Connection.
	Canary string

	// Except are rules that the system can't keep, each with the reason, which the skipped test
	// shows.
	Except map[ClientRule]string

	// Patience is how long the kit waits for an operation of the system: ten seconds if it is
	// zero. Interval is how often it observes meanwhile: ten milliseconds.
	Patience, Interval time.Duration
}

// complete returns the configuration with what is zero set.
func (c ClientConfig[T]) complete() (ClientConfig[T], error) {
	switch {
	case c.Connect == nil || c.New == nil:
		return c, errors.New("ctrlkittest: ClientConfig needs Identity, Connect and New")
	case c.Names.MaxLength == 0 && c.Names.Prefix != "":
		return c, errors.New("ctrlkittest: ClientConfig.Names needs MaxLength")
	}
	c.Unknown = cmp.Or(c.Unknown, "ctrlkittest-unknown")
	c.Patience, c.Interval = cmp.Or(c.Patience, 10*time.Second), cmp.Or(c.Interval, 10*time.Millisecond)
	_, err := c.Identity.Creation(c.New())
	return c, err
}
