// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// When returns a step whose steps are only done for objects that cond is true for. Description says
// when that is, for [journal.StepSkipped].
//
//   - Their Cleanup and their Post are called for all objects, because cond may have been true
//     once.
//   - The finalizer is put on an object when cond is first true.
//   - A condition of theirs is healthy, with reason NotNeeded, as long as cond is false.
func When[T client.Object](description string, cond func(req *Request[T]) bool, steps ...Step[T]) Step[T] {
	return Step[T]{Name: description, inner: &composite[T]{cond: cond, steps: steps}}
}

// Group returns a step whose steps do not depend on each other.
//
//   - All are done at the same time, also when one of them fails or waits. So it is with their
//     Cleanup; their Post is called one after the other.
//   - At most 16 steps of an object run at the same time. They begin in the order given.
//   - Their outcomes are joined in the order given. The steps after the group are reached when all
//     have passed.
//   - The steps share the request. Conditions, [Put] and the clients are safe for that.
//   - Of the object, each step writes fields of its own, and reads none that another one writes:
//     two may set two fields of the status, but not two annotations, which are one map.
//     [GroupOrdered] is for steps that can't follow this rule.
func Group[T client.Object](name string, steps ...Step[T]) Step[T] {
	return Step[T]{Name: name, inner: &composite[T]{order: atOnce, steps: steps}}
}

// GroupOrdered is [Group] one step after the other, in the order given, and with Cleanup in reverse
// order.
func GroupOrdered[T client.Object](name string, steps ...Step[T]) Step[T] {
	return Step[T]{Name: name, inner: &composite[T]{order: eachInTurn, steps: steps}}
}

// An order is how the steps of a composite are run.
type order int

const (
	untilOneStops order = iota // in order, until one does not pass
	eachInTurn                 // in order, all of them
	atOnce                     // all of them, at the same time
)

// A composite is what a step is made of that is made of others.
type composite[T client.Object] struct {
	cond  func(req *Request[T]) bool
	order order
	steps []Step[T]
}
