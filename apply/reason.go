// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

// Reasons of the condition of a set.
const (
	// reasonAllReady: all objects are ready.
	reasonAllReady = "AllReady"
	// reasonNotAllReady: an object is not ready yet, or waits for one.
	reasonNotAllReady = "NotAllReady"
	// reasonObjectFailed: an object will not become ready without a change.
	reasonObjectFailed = "ObjectFailed"
	// reasonWrongSet: an object is added twice, has no name, is of an undeclared kind, or the like.
	reasonWrongSet = "WrongSet"
	// ReasonOwnedByAnother: an object exists and belongs to another owner.
	ReasonOwnedByAnother = "OwnedByAnother"
	// reasonJobFailed: a Job with the policy [Once] has failed.
	reasonJobFailed = "JobFailed"
	// reasonImmutableField: a field of an object can't be changed.
	reasonImmutableField = "ImmutableField"
	// reasonFieldConflict: another field manager has set a field of an object with the policy
	// [StopOnConflict].
	reasonFieldConflict = "FieldConflict"
	// reasonUnknownPolicy: an object has a [PolicyAnnotation] with a word that is no policy.
	reasonUnknownPolicy = "UnknownPolicy"
	// reasonLeft is that of a Kubernetes event: an object with the label of the set is left, because
	// nothing proves that it is one of the set.
	reasonLeft = "Left"
	// reasonOrphaned is that of a Kubernetes event: the owner was deleted with --cascade=orphan, and its
	// objects stay.
	reasonOrphaned = "Orphaned"
	// reasonNotSelected: the cache of the operator does not have an object of the set.
	reasonNotSelected = "NotSelected"
	// reasonPruneLimit: more objects have left the set than may be deleted at once.
	reasonPruneLimit = "PruneLimit"
)
