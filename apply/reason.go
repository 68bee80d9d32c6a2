// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

// Reasons of the condition of a set.
const (
	// ReasonAllReady: all objects are ready.
	ReasonAllReady = "AllReady"
	// ReasonNotAllReady: an object is not ready yet, or waits for one.
	ReasonNotAllReady = "NotAllReady"
	// ReasonObjectFailed: an object will not become ready without a change.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonWrongSet: an object is added twice, has no name, is of an undeclared kind, or the like.
	ReasonWrongSet = "WrongSet"
	// ReasonOwnedByAnother: an object exists and belongs to another owner.
	ReasonOwnedByAnother = "OwnedByAnother"
	// ReasonJobFailed: a Job with the policy [Once] has failed.
	ReasonJobFailed = "JobFailed"
	// ReasonImmutableField: a field of an object can't be changed.
	ReasonImmutableField = "ImmutableField"
	// ReasonFieldConflict: another field manager has set a field of an object with the policy
	// [StopOnConflict].
	ReasonFieldConflict = "FieldConflict"
	// ReasonUnknownPolicy: an object has a [PolicyAnnotation] with a word that is no policy.
	ReasonUnknownPolicy = "UnknownPolicy"
	// ReasonLeft is that of a Kubernetes event: an object with the label of the set is left, because
	// nothing proves that it is one of the set.
	ReasonLeft = "Left"
	// ReasonOrphaned is that of a Kubernetes event: the owner was deleted with --cascade=orphan, and its
	// objects stay.
	ReasonOrphaned = "Orphaned"
	// ReasonNotSelected: the cache of the operator does not have an object of the set.
	ReasonNotSelected = "NotSelected"
	// ReasonPruneLimit: more objects have left the set than may be deleted at once.
	ReasonPruneLimit = "PruneLimit"
)
