// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain says in words why an object is as it is: which step has failed or waits, for what and since when, what made the last reconciles run and
// what they wrote, who holds which finalizer, and what a person can do about it.
//
// An operator serves what it knows beside its metrics, guarded as they are:
//
//	ring := journal.NewRing(journal.RingOptions{})
//	if err := explain.Serve(mgr, ring); err != nil { ... }
//	engine, err := step.New(step.Options[*v1.Database]{..., Observers: []journal.Observer{ring}}, ...)
//
// and "ctrlkit explain database/db" asks it. Without access to the operator the command says what the conditions, finalizers and annotations of the
// object say.
package explain
