// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

// Reasons of the conditions that the engine computes.
const (
	// ReasonWaiting: something is missing that will come.
	ReasonWaiting = "Waiting"
	// ReasonCleaningUp: the object is being deleted, and its cleanup is not done.
	ReasonCleaningUp = "CleaningUp"
	// reasonCleanedUp: the object is being deleted, its cleanup is done, and finalizers of others
	// keep it.
	reasonCleanedUp = "CleanedUp"
	// reasonDeleting: the object is being deleted, the operator has nothing to clean up, and
	// finalizers of others keep it.
	reasonDeleting = "Deleting"
	// reasonFinalizerRemoved: the object is being deleted, another client has removed our
	// finalizer, and nothing is cleaned up.
	reasonFinalizerRemoved = "FinalizerRemoved"
	// reasonPredecessor: an object of the same name is gone, and its cleanup is not done.
	reasonPredecessor = "PredecessorNotCleanedUp"
	// reasonNoStatusSubresource: the definition of the kind has no status subresource, so that the
	// status can't be written.
	reasonNoStatusSubresource = "NoStatusSubresource"
	// ReasonHotLoop: the object is reconciled again and again because of what is written to it, and
	// slowed down.
	ReasonHotLoop = "HotLoop"
	// reasonStepLate is the reason of an event: a step has been running for long.
	reasonStepLate = "StepLate"
	// reasonNotNeeded: the step that declares the condition is in a [When] that does not hold.
	reasonNotNeeded = "NotNeeded"
)
