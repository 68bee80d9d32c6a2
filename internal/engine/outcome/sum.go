// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import "sigs.k8s.io/controller-runtime/pkg/reconcile"

// A Sum is the [Outcome.Join] of many parts, in time and memory linear in their causes and waits.
// The zero value is the outcome of no part. It is not safe for concurrent use.
type Sum[W any] struct {
	result      reconcile.Result
	causes      []error // never shared with a part: Add appends to it
	waits       []W     // as causes
	interrupted bool
}

// Add joins a part to what was added before. The part is not changed, and its slices are not kept.
func (s *Sum[W]) Add(part Outcome[W]) {
	s.result = joinResults(s.result, part.Result)
	s.causes = append(s.causes, part.Causes...)
	s.waits = append(s.waits, part.Waits...)
	s.interrupted = s.interrupted || part.Interrupted
}

// Outcome returns the join of all parts so far. Nothing may be added afterwards.
func (s *Sum[W]) Outcome() Outcome[W] {
	return Outcome[W]{Result: s.result, Causes: s.causes, Waits: s.waits, Interrupted: s.interrupted}
}

// Interrupted reports whether one of the parts so far interrupts.
func (s *Sum[W]) Interrupted() bool { return s.interrupted }
