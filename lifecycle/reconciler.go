// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Reconciler makes what an object stands for as its spec wants it, and removes it. One value
// serves all objects, at the same time. Further abilities are optional interfaces: [Claimer],
// [StatusUpdater], [Releaser], [Finisher] and [VerbChecker]. What it watches and which conditions
// it sets is in the [Options].
//
//   - Each is idempotent: it is called again after every error, crash and change.
//   - Each may change the metadata and the status of req.Object, which the engine writes at the
//     end of the reconcile, also after an error, if they have changed. Req.Save writes them at
//     once.
//   - An error makes Ready false, with the reason, the severity, the remedy and the backoff that
//     failure.Mark gives it. A wait is no error.
//   - [PolicyOf] returns what they may do.
type Reconciler[T client.Object] interface {
	// CreateOrUpdate makes what the object stands for. Called for an object that is not being
	// deleted, whose claim and finalizer are written, if its policy allows to create and to
	// update.
	CreateOrUpdate(ctx context.Context, req *step.Request[T]) error

	// Delete removes it. Called for an object that is being deleted, if it was claimed and its
	// policy allows to delete. When Delete passes, the finalizer is removed. It must not fail when
	// there is nothing to remove.
	Delete(ctx context.Context, req *step.Request[T]) error
}

// A Claimer is a [Reconciler] that finds out something, or writes something down, before anything
// is made: whether the owner exists, the name or the id that will be used.
type Claimer[T client.Object] interface {
	Reconciler[T]
	// Claim returns nil if CreateOrUpdate may follow. What it has changed of the metadata is
	// written before that, in one patch with the finalizer. An error or a wait ends the reconcile,
	// and an object without the finalizer gets none: it can be deleted at once.
	//
	// Called before each CreateOrUpdate, so that it claims again what has changed. Where the
	// policy allows to delete and not to create or update, it is called before UpdateStatus: what
	// exists has to be known when the object is deleted.
	//
	// It waits for an object with step.GetOrWait. Options.Watches has the watch that ends the
	// wait. With [step.ErrNothingToClaim], CreateOrUpdate is called, and nothing is
	// written before: it makes nothing that has to be removed.
	Claim(ctx context.Context, req *step.Request[T]) error

	// Claimed reports whether the object was ever claimed, by what Claim has written. There is
	// nothing to delete for an object that was not: an admission policy may have given it the
	// finalizer. A Claim that writes nothing returns true here. So does one whose name or id is
	// known without what it has written, because it is made of the UID: another client may have
	// removed an annotation.
	Claimed(obj T) bool
}

// A StatusUpdater is a [Reconciler] that can refresh the status without changing anything else.
type StatusUpdater[T client.Object] interface {
	Reconciler[T]
	// UpdateStatus observes what the object stands for. Called for an object that is not being
	// deleted, instead of CreateOrUpdate, if its policy does not allow that. It changes nothing
	// outside the status of req.Object.
	UpdateStatus(ctx context.Context, req *step.Request[T]) error
}

// A Releaser is a [Reconciler] that says outside the cluster that what an object stands for has no
// owner any more.
type Releaser[T client.Object] interface {
	Reconciler[T]
	// Release is called instead of Delete for an object that is being deleted, if its policy keeps
	// what it stands for. An error is reported in a Kubernetes event, and prevents nothing.
	Release(ctx context.Context, req *step.Request[T]) error
}

// A Finisher is a [Reconciler] with work for the end of each reconcile.
type Finisher[T client.Object] interface {
	Reconciler[T]
	// Finish does that work, as Post of a [step.Step] does.
	Finish(ctx context.Context, req *step.Request[T]) error
}

// A VerbChecker is a [Reconciler] that asks [PolicyOf] before it creates, and before it updates.
// Its CreateOrUpdate is called if one of the two is allowed. It also calls req.EnsureFresh before
// it creates, which costs a live read after a restart, and not for what exists.
type VerbChecker[T client.Object] interface {
	Reconciler[T]
	// ChecksVerbs is never called.
	ChecksVerbs()
}

// PolicyOf returns what the policy of the object of a request allows. Without a step of [New]
// around it allows nothing.
func PolicyOf[T client.Object](req *step.Request[T]) policy.Decision {
	decision, _ := step.Lookup(req, decisionKey)
	return decision
}

var decisionKey = step.NewKey[policy.Decision]("the policy of the object")
