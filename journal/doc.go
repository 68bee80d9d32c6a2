// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package journal records what happens in an operator: which changes caused a reconcile, what each
// step and action did, what was read and written, what is waited for, and when the object is
// reconciled again.
//
//	ring := journal.NewRing(journal.RingOptions{})
//	engine, err := step.New(step.Options[*v1.Database]{
//		...,
//		Observers: []journal.Observer{ring},
//	}, ...)
//	...
//	for _, entry := range ring.Entries(object) {
//		fmt.Println(entry)
//	}
//
// Everything that happens is an [Event], one of the types of this package. An [Observer] receives
// them; explanations, metrics, traces and logs are observers or read a [Ring], and none of them has
// a channel of its own. Without an observer nothing is collected, and nothing allocated.
//
// The journal records. It must not decide: what a reconcile does depends on the state of the
// cluster and never on its causes, because causes are merged, repeated, and lost in a crash.
package journal
