// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"reflect"
	"slices"
)

// Kept says how the objects of a set are, when its step has written what it could. See package
// apply.
type Kept struct {
	Step     string
	Children []Child // in the order in which they were added
}

// A Child is an object of a set.
type Child struct {
	Object Object
	State  ChildState
	// Text is what it lacks, what it waits for, or why it has failed; empty for one that is ready.
	Text string
	// Reason and Remedy are those of a failure.
	Reason, Remedy string
}

// A ChildState is how an object of a set is.
type ChildState string

// The states of the objects of a set.
const (
	ChildReady    ChildState = "ready"
	ChildNotReady ChildState = "not ready"
	ChildFailed   ChildState = "failed"  // it could not be written, or will not become ready
	ChildWaiting  ChildState = "waiting" // it can't be written yet
	ChildBlocked  ChildState = "blocked" // it waits for those of an earlier wave
)

func (Kept) event() {}

func (e Kept) String() string {
	return fmt.Sprintf("%s has %d of %d objects ready", e.Step, e.ready(), len(e.Children))
}

// ready returns how many objects are ready.
func (e Kept) ready() int {
	ready := 0
	for _, c := range e.Children {
		if c.State == ChildReady {
			ready++
		}
	}
	return ready
}

func (e Kept) withTexts(f func(string) string) Event {
	e.Step, e.Children = f(e.Step), slices.Clone(e.Children)
	for i := range e.Children {
		c := &e.Children[i]
		c.Object, c.Text, c.Reason, c.Remedy = c.Object.withTexts(f), f(c.Text), f(c.Reason), f(c.Remedy)
	}
	return e
}

var childBytes = int(reflect.TypeFor[Child]().Size())
