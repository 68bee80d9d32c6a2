// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A Step is a part of the work for an object of type T: a name, and the functions that it has. What
// is nil does not exist. One value serves all objects, at the same time: what belongs to one
// reconcile is in the [Request].
//
//	var divide = step.Step[*v1.Simple]{
//		Name: "Divide",
//		Do: func(ctx context.Context, req *step.Request[*v1.Simple]) error {
//			req.Object.Status.Quotient = req.Object.Spec.Dividend / req.Object.Spec.Divisor
//			return nil
//		},
//	}
//
// Each function returns one error:
//
//   - nil, and the next step follows;
//   - [ctrlkit.Wait], for what a watch will report, and [ctrlkit.Poll], for what nothing reports: the
//     steps end without a failure;
//   - [ctrlkit.ErrExit]: they end without a reason;
//   - [ctrlkit.RequeueWithin]: they go on, and the object is reconciled again within a time;
//   - any other error: it is a failure, which is classified, shown in the conditions and tried again
//     with backoff. See package failure.
//
// Wrong, because the time is lost and a condition shows a failure:
//
//	if errors.Is(err, errBusy) {
//		return fmt.Errorf("busy: %w", err)
//	}
//
// Right, because it is no failure, and the object is reconciled when the system can have changed:
//
//	if errors.Is(err, errBusy) {
//		return ctrlkit.Poll("the system, which is busy", 10*time.Second)
//	}
//
// Other packages make steps: apply.Children, external.New, reference.Require. [Group] and [When] make
// one of several.
type Step[T client.Object] struct {
	// Name names the step: short, unique in its engine, without a line break.
	Name string

	// Do brings the object nearer to what its spec wants. Called when the object is not being
	// deleted, and the steps before it have passed.
	//
	//   - It must be idempotent: it is called again after every error, crash and change.
	//   - It may change the metadata and the status of req.Object, which the engine saves, also
	//     after an error. It must not change the spec, which belongs to the user.
	//   - An error ends the sequence of steps, except ctrlkit.RequeueWithin.
	Do func(ctx context.Context, req *Request[T]) error

	// Cleanup removes what Do has made, if nothing else does when the object is deleted. Called when
	// the object is being deleted and has our finalizer, the last step first. An engine that has a
	// step with a Cleanup puts its finalizer on each object, before any Do; see also Cleans.
	//
	//   - It must be idempotent, and do no harm when Do was never called.
	//   - It is also called for an object that is already gone because its finalizer was lost:
	//     then changes of req.Object are not saved.
	//   - It does not begin when another client has removed the finalizer: that is a decision to
	//     keep what Do has made.
	//   - An error ends the sequence, a wait and an exit too: the finalizer stays, a condition says
	//     why, and Cleanup is called again; after an exit, by the next event.
	//   - ctrlkit.RequeueWithin does not end it, and its time is not used: the object is removed.
	//   - Nothing outside the cluster is made for an object that is gone, which a stale cache still
	//     shows, if Do calls [Request.EnsureFresh] first.
	Cleanup func(ctx context.Context, req *Request[T]) error

	// Cleans reports whether there may be something to clean up for req.Object. For the objects that
	// it is false for, the engine does not put its finalizer on the object because of this step.
	// Called before Do, so it is true for what Do is about to make; it must be quick, and reads
	// nothing. Nil is true for all.
	Cleans func(req *Request[T]) bool

	// Claim records on the object what Do is about to make, before it makes it: the name or the token
	// of something outside the cluster. It changes the metadata of req.Object, or nothing. Called
	// before each Do, of a step that has a Cleanup.
	//
	//   - The engine writes what it has changed before Do, in one patch with the finalizer if the
	//     object does not have that yet, and nothing if nothing has changed.
	//   - It makes nothing that has to be cleaned up. If it returns an error or a wait, such as
	//     for an owner that does not exist yet, Do is not called, and an object without the
	//     finalizer gets none: it can be deleted at once.
	//   - With [ErrNothingToClaim], nothing is written either, and Do is called all the same. It
	//     then makes nothing that has to be cleaned up.
	//   - It must be idempotent. It is called again when the object changes, and may claim
	//     something else then.
	//   - A Do that is reached knows that the claim is written, also after a crash.
	Claim func(ctx context.Context, req *Request[T]) error

	// Post does work for the end of each reconcile. Called before the object is saved, after Do and
	// after Cleanup, whatever they and the other steps have returned; not when a gate ends the
	// reconcile before its steps. Req.Failure returns what has failed so far.
	Post func(ctx context.Context, req *Request[T]) error

	// Gate returns why the engine leaves an object alone, because another operator reconciles it; an
	// empty reason if it does not. Called before anything else is done for the object, which belongs
	// to the cache. It must be cheap, and depend on obj only.
	//
	// Nothing is written to the object then, not even a condition or a finalizer, also when it is
	// being deleted. A Kubernetes event says why, once for each process.
	Gate func(obj T) (reason, message string)

	// Conditions are those that the step sets.
	Conditions []condition.Declaration

	// Watches returns what has to be watched for the step, which [Engine.Complete] watches. Called
	// once for each controller, before it starts.
	Watches func() []Watch

	// Uses are what the step does with objects of other kinds besides watching them, and with the
	// subresources of its own, so that the permissions of the operator follow: see [Engine.Needs].
	// What Watches returns is also read, and what the engine writes needs no declaration.
	Uses []Use

	// Plan is how the package that has made the step answers what Do would write, such as
	// apply.PlanFor. It is nil for a step of one's own.
	Plan any

	// Err is a mistake in how the step was made, such as invalid options: [New] returns it.
	Err error

	inner *composite[T] // not nil for a step that is made of others
}

// HasCleanup reports whether the step has a Cleanup, or one of those that it is made of: then an
// engine with it has a finalizer.
func (s Step[T]) HasCleanup() bool {
	return s.Cleanup != nil || s.inner != nil && slices.ContainsFunc(s.inner.steps, Step[T].HasCleanup)
}

// ErrNothingToClaim is returned by Step.Claim for an object for which Do makes nothing, for example
// because a policy forbids it.
var ErrNothingToClaim = errors.New("nothing to claim")
