// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram

type (
	Outcome  = outcome
	Outcomes = outcomes
	State    = state
)

const (
	StateNotRun   = stateNotRun
	StateRunning  = stateRunning
	StateDone     = stateDone
	StateExited   = stateExited
	StateRequeued = stateRequeued
	StateWaiting  = stateWaiting
	StateFailed   = stateFailed
)

// Marked is WithOutcomes without a recorder.
var Marked = marked

func (r *Recorder) Outcomes() Outcomes { return r.outcomes() }
