// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package cause records what triggers reconciles: events of watches, requested times and backoffs.
//
// A queue only knows the names of objects. A [Recorder] keeps the events that were seen since the
// last reconcile of each object, and reports them to the observers. A [Timer] is when one object is
// to be reconciled again without an event. It combines the two:
//
//	causes := timer.Causes(recorder.Take(key), written, now)
//
// The package reads nothing and decides nothing: the engine computes the times, and the journal
// describes and merges the causes.
package cause
