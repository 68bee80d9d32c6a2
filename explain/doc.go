// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain serves what an operator knows about its objects to "ctrlkit explain", which says
// why an object is in its state: which step has failed or waits, for what and since when, what
// caused the last reconciles and what they wrote, who owns which finalizer, and what a person can
// do about it.
//
// The operator keeps a [journal.Ring] and serves it beside its metrics, with the same protection:
//
//	ring := journal.NewRing(journal.RingOptions{})
//	if err := explain.Serve(mgr, ring); err != nil { ... }
//	engine, err := step.New(step.Options[*v1.Database]{
//		...,
//		Observers: []journal.Observer{ring},
//	}, ...)
//
// Package observe does this in one line. Without access to the operator the command explains what
// the conditions, finalizers and annotations of the object say. It is a package of its own because
// it imports no engine: any that keeps a journal can be explained.
package explain
