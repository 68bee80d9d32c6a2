// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package journal says what happened in an operator: which changes made it reconcile an object, what each step and action did,
// what was read and written, what is waited for, and when the object is looked at again.
//
//	ring := journal.NewRing(journal.RingOptions{})
//	engine, err := step.New(step.Options[*v1.Database]{..., Observers: []journal.Observer{ring}}, ...)
//	...
//	for _, entry := range ring.Entries(object) {
//		fmt.Println(entry)
//	}
//
// Everything that happens is an [Event], one of the types of this package. Whoever wants to know is an [Observer]; explanations,
// metrics, traces and logs are observers or read a [Ring], and none of them has a channel of its own. Nothing is collected, and nothing
// allocated, when nobody listens.
//
// The journal tells. It must not decide: what a reconcile does depends on the state of the world and never on what made it run, because
// causes are merged, repeated, and lost in a crash.
package journal
