// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package external has what the parts of a simulation know of the external systems of a workload.
package external

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// What faults answer to calls.
var (
	ErrThrottled   = errors.New("too many requests")
	ErrUnavailable = errors.New("the service is unavailable")
	ErrLost        = errors.New("the connection was lost before the answer came")
)

// A Call is one call of an external system.
type Call struct {
	System  string    // which system
	Verb    string    // what is done: create, get, ...
	What    string    // to what
	Mutates bool      // whether it has an effect outside
	Owner   types.UID // the UID of the object for which it is done, if it mutates and is known

	// Origin is where the call comes from. It is nil if the call does not mutate.
	Origin *Origin
}

// An Origin says where a write or call comes from.
type Origin struct {
	Actor string    // which process
	Stack []uintptr // of the goroutine that waits for the answer
	N     int       // which write or call of the run it is, from 1
}

// String returns the call in a line, as traces show it.
func (c Call) String() string {
	s := c.System + " " + c.Verb
	if c.What != "" {
		s += " " + c.What
	}
	return s
}

// A Resource is one in the inventory of an external system.
type Resource struct {
	ID    string
	Name  string
	Owner types.UID // for which object it was created; empty: none of the simulation
	Tags  map[string]string
	Spec  map[string]string
}

// A System is one external system of a run.
type System interface {
	// Inventory returns the resources, ordered by id.
	Inventory() []Resource

	// Created returns how many resources were created for an object so far.
	Created(owner types.UID) int

	// MintsIDs reports whether the system makes up the ids of its resources, so that they differ
	// between runs.
	MintsIDs() bool

	// Drift changes the first resource that belongs to an object, or to any if owner is empty, as
	// another client of the system would. It returns the id of the resource, if there was one.
	Drift(owner types.UID) (id string, ok bool)
}

// Blocked are the objects whose calls an outage has stopped.
type Blocked struct {
	System string
	Owners []types.UID
}
