// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A Step is a part of the work for an object of type T. One value serves all objects, at the same
// time: what belongs to one reconcile is in the [Request]. Further abilities are optional
// interfaces: [Cleaner], [Claimer], [PostStep], [ConditionDeclarer], [Watcher], [UseDeclarer]
// and [Gatekeeper].
type Step[T client.Object] interface {
	// Name names the step: short, unique in its engine, without a line break.
	Name() string

	// Do brings the object nearer to what its spec wants. Called when the object is not being
	// deleted, and the steps before it have passed.
	//
	//   - It must be idempotent: it is called again after every error, crash and change.
	//   - It may change the metadata and the status of req.Object, which the engine saves, also
	//     after an error. It must not change the spec, which belongs to the user.
	//   - Its outcome is one of package ctrlkit: an error, a wait or a requeue ends the sequence
	//     of steps, ctrlkit.ContinueAndRequeueAfter does not.
	Do(ctx context.Context, req *Request[T]) (ctrl.Result, error)
}

// A Cleaner is a [Step] that makes something which nothing else removes when the object is
// deleted. An engine with such a step puts its finalizer on each object, before any Do; see also
// [SelectiveCleaner].
type Cleaner[T client.Object] interface {
	Step[T]
	// Cleanup removes what Do has made. Called when the object is being deleted and has our
	// finalizer, the last step first.
	//
	//   - It must be idempotent, and do no harm when Do was never called.
	//   - It is also called for an object that is already gone because its finalizer was lost:
	//     then changes of req.Object are not saved.
	//   - It does not begin when another client has removed the finalizer: that is a decision to
	//     keep what Do has made.
	//   - An error, a wait, a requeue or an exit ends the sequence: the finalizer stays, a
	//     condition says why, and Cleanup is called again; after an exit, by the next event.
	//   - ctrlkit.ContinueAndRequeueAfter does not end it, and its time is not used: the object is
	//     removed.
	Cleanup(ctx context.Context, req *Request[T]) (ctrl.Result, error)
}

// A Claimer is a [Cleaner] that records on the object what it is about to make, before it makes
// it: the name or the token of something outside the cluster.
type Claimer[T client.Object] interface {
	Cleaner[T]
	// Claim changes the metadata of req.Object, or nothing. Called before each Do.
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
	Claim(ctx context.Context, req *Request[T]) error
}

// ErrNothingToClaim is returned by a Claim for an object for which Do makes nothing, for example
// because a policy forbids it.
var ErrNothingToClaim = errors.New("nothing to claim")

// A Gatekeeper is a [Step] that knows objects which the engine has to leave alone, because another
// operator reconciles them.
type Gatekeeper[T client.Object] interface {
	Step[T]
	// Gate returns why an object is left alone; an empty reason if it is not. Called before
	// anything else is done for the object, which belongs to the cache. It must be cheap, and
	// depend on obj only.
	//
	// Nothing is written to the object then, not even a condition or a finalizer, also when it is
	// being deleted. A Kubernetes event says why, once for each process.
	Gate(obj T) (reason, message string)
}

// A SelectiveCleaner is a [Cleaner] that has something to clean up for some objects only. For the
// others, the engine does not put its finalizer on the object because of this step.
type SelectiveCleaner[T client.Object] interface {
	Cleaner[T]
	// Cleans reports whether there may be something to clean up for req.Object. Called before Do,
	// so it is true for what Do is about to make; it must be quick, and reads nothing.
	Cleans(req *Request[T]) bool
}

// A PostStep is a [Step] with work for the end of each reconcile.
type PostStep[T client.Object] interface {
	Step[T]
	// Post does that work. Called before the object is saved, after Do and after Cleanup, whatever
	// they and the other steps have returned; not when a gate ends the reconcile before its steps.
	// Req.Failure returns what has failed so far.
	Post(ctx context.Context, req *Request[T]) error
}

// A ConditionDeclarer is a [Step] that sets conditions of the object.
type ConditionDeclarer[T client.Object] interface {
	Step[T]
	// Conditions declares them. Called once, by [New].
	Conditions() []condition.Declaration
}

// A Watcher is a [Step] that declares what has to be watched for it. [Engine.Complete] watches it.
type Watcher[T client.Object] interface {
	Step[T]
	// Watches declares the watches. Called once for each controller, before it starts.
	Watches() []Watch
}

// A Watch is one of objects of a kind.
type Watch struct {
	// Object has the type that is watched.
	Object client.Object
	// Owned requests a reconcile of the controller of each object that changes, as
	// builder.Builder.Owns does.
	Owned bool
	// Named returns which objects of the engine's kind to reconcile when one changes. It may be
	// nil.
	Named func(obj client.Object, kind schema.GroupKind) []client.ObjectKey
	// NamedBy returns the keys of the watched objects on which an object of the engine depends. It
	// is reconciled when one of them changes, as with [Engine.WatchNamed], which says what the
	// function may do. It may be nil.
	NamedBy func(obj client.Object) []client.ObjectKey
	// NamedAs returns keys by which NamedBy knows a watched object, besides its own: one of each of
	// its labels, for objects that depend on all that have a label. Such keys have names that no
	// object can have, such as "app=shop". It may be nil.
	NamedAs func(watched client.Object) []client.ObjectKey
	// Read requests a reconcile of each object for which the steps have read the watched one by its
	// name, through Request.Client or Request.APIReader, when they ran last: also if it was not there.
	// It is for what only the code of a step knows, such as which Secret has the credentials. Which
	// object has read which is kept in memory.
	Read bool
	// Changed reports whether a change requests reconciles. Before is nil for an object that was
	// not there, as all of them are when the watch begins, now for one that is gone. It is for
	// kinds that change often in what no step reads. It may be nil: then every change does.
	Changed func(before, now client.Object) bool
	// Later is the cache of the manager if the definition of the kind may come after the operator
	// has started. The controller does not wait for such a watch, which begins at most ten seconds
	// after the API server has the kind. Event filters of the builder do not apply to it. With
	// Options.Cache, which is for all watches of an engine, it need not be set.
	Later cache.Cache
	// Note is called for each object that exists, changes or is gone, before the reconcile that
	// this requests. Before is nil for an object that was not there, now for one that is gone. It
	// may be nil.
	Note func(kind schema.GroupKind, before, now client.Object)
}

// Func returns a step with a name and a Do.
func Func[T client.Object](name string, do func(ctx context.Context, req *Request[T]) (ctrl.Result, error)) Step[T] {
	return funcStep[T]{name, do}
}

type funcStep[T client.Object] struct {
	name string
	do   func(ctx context.Context, req *Request[T]) (ctrl.Result, error)
}

func (s funcStep[T]) Name() string { return s.name }
func (s funcStep[T]) Do(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
	return s.do(ctx, req)
}
