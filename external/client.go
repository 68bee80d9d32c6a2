// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/answer"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Connector makes clients of the external system. One value serves all objects, at the same
// time.
type Connector[T client.Object] interface {
	// Connect returns a client for the system of an object, with the credentials for it. Called
	// once in each reconcile that calls the system.
	//
	//   - It reads what it needs by name through req.Client, and the kind is in Options.Reads: then a
	//     change of it reconciles the object, also of what was not there yet.
	//   - Connections are shared by a [Pool].
	//   - An error that a person can clear, such as for a Secret that is missing, has a remedy:
	//     see failure.WithRemedy. The condition shows it. Where an error or a wait prevents a
	//     deletion, the condition also says how to delete the object without the system.
	Connect(ctx context.Context, req *step.Request[T]) (Client[T], error)
}

// A Client observes and changes one resource. It is used for one reconcile, by one goroutine.
// Further abilities are optional interfaces: [Finder], [Releaser] and [LateInitializer]; a client that is an
// io.Closer is closed at the end of the reconcile.
//
// What its methods have in common:
//
//   - Id is what identifies the resource: the name that was chosen for it, or the id that Create
//     has returned.
//   - They do not change obj, except its status.
//   - They return when ctx is done. It has a deadline.
//   - They do not wait for operations that take long: Observe reports these, and is called again.
//   - An error is what the system says, or that it could not be asked. Package failure classifies
//     it, and failure.Mark adds to that.
type Client[T client.Object] interface {
	// Observe returns how the resource is. It changes nothing in the system. A resource that does
	// not exist is no error, but the state [Absent].
	Observe(ctx context.Context, obj T, id string) (Observation, error)

	// Create creates the resource, as creation says, and returns its id. It is empty or the name
	// where the object has chosen a name.
	//
	//   - Where there is a name or a token, it may be called again for a resource that exists,
	//     whose id it then returns. For the token of a resource that was deleted since, it creates
	//     another one, or returns the former id: then it is called with another token.
	//   - After an error made by [Refused] it is called with the same token again.
	//   - An error says that it is not known whether the resource was created, unless it is made
	//     by [Refused].
	Create(ctx context.Context, obj T, creation Creation) (id string, err error)

	// Update changes what Observe has reported as drift.
	Update(ctx context.Context, obj T, id string) error

	// Delete deletes the resource, or begins to. It does not fail if there is none.
	Delete(ctx context.Context, obj T, id string) error
}

// A Creation is by what a resource is found again after its creation. One of Name, Token and Tag is
// set, by the [Identity] of the system.
type Creation struct {
	Name  string
	Token string // the same for each attempt to create the same resource
	Tag   string // to be stored with the resource
}

// Keep has details published that the system returns only once, such as a key that it has made: Create
// and Update call it, with their context. They are in the Secret of Options.ConnectionSecret beside
// Observation.Connection before anything else is called or written. A crash before that loses them.
//
// What Update keeps, such as a password that the system has made, replaces what was returned once
// before under the same key, and is published also if Update then fails.
func Keep(ctx context.Context, details map[string][]byte) { answer.Keep(ctx, details) }

// A Finder is a [Client] of a system whose resources are found by a tag. Identity [ByTag] needs
// it.
type Finder[T client.Object] interface {
	Client[T]
	// Find returns the id of the resource with a tag, empty if there is none.
	Find(ctx context.Context, obj T, tag string) (id string, err error)
}

// A Releaser is a [Client] that removes the stored owner of a resource which its object leaves: the
// policy of the object keeps it. Then it is no orphan for an [Audit], and any object may adopt it.
type Releaser[T client.Object] interface {
	Client[T]
	// Release removes the owner. The object is deleted also if it fails, because who keeps a resource
	// may do so because the system does not answer.
	Release(ctx context.Context, obj T, id string) error
}

// A LateInitializer is a [Client] that knows which fields of a spec the system has chosen because
// they were not set.
type LateInitializer[T client.Object] interface {
	Client[T]
	// LateInitialize sets fields of the spec of obj, a copy, that are not set, to what Observe has
	// just found. Called if the policy of the object allows it. What it changes is written.
	LateInitialize(obj T)
}

// A State is how a resource is. The zero value is invalid.
type State int

const (
	Absent   State = iota + 1 // it does not exist
	UpToDate                  // it is as the spec wants it
	Drifted                   // it exists, and differs from the spec: see Observation.Drift
	Creating                  // the system is creating it
	Updating                  // the system is changing it
	Deleting                  // the system is deleting it
	Broken                    // the system says that it has failed: see Observation.Message
)

var stateNames = [...]string{"invalid", "absent", "up to date", "drifted", "creating", "updating", "deleting", "broken"}

// String returns the state in words.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return stateNames[0]
	}
	return stateNames[s]
}

// An Observation is what Observe has found.
type Observation struct {
	State State

	// Drift are the paths of the spec whose values the resource does not have: "spec.subjects".
	// They must not have secrets.
	Drift []string

	// Message says how far an operation of the system is, or why the resource is broken.
	Message string

	// Final says of a resource that is Broken that it does not recover by itself: a person has to act,
	// and the object is Stalled. It is observed again all the same, more and more rarely.
	Final bool

	// Unavailable says why the resource can't be used although it is up to date; empty if it can.
	Unavailable string

	// Owner is the owner that is stored with the resource: what [OwnerOf] returned when it was
	// created. Empty if none is stored.
	Owner string

	// Adoptable says that the resource may be adopted by an object that names it: the system shows, by a
	// prefix or a tag that no user of the objects can write, that this operator has made it, or is to
	// have it. See Options.Adopt.
	Adoptable bool

	// Settings are what a [journal.ChangeLog] shows of the resource before and after each change, such as
	// its size. They must not have secrets. It may be nil.
	Settings map[string]string

	// Connection is what a client of the resource needs, such as its address and a password. It is
	// published: see Options.ConnectionSecret and Options.Publish.
	Connection map[string][]byte
}

// exists reports whether there is a resource.
func (o *Observation) exists() bool { return o.State != Absent }

// shown is what a change log shows of the resource.
func (o *Observation) shown() journal.Seen {
	if o.State <= 0 || int(o.State) >= len(stateNames) {
		return journal.Seen{}
	}
	return journal.Seen{State: o.State.String(), Settings: o.Settings}
}

// busy reports whether an operation of the system is in progress.
func (o *Observation) busy() bool {
	return o.State == Creating || o.State == Updating || o.State == Deleting
}

// Refused marks an error of Create that says for certain that nothing was created: the system has
// answered so. Without it, it is not known what became of the request.
func Refused(err error) error { return answer.Refused(err) }
