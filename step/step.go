// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A Step is a part of the work for an object of type T. One value serves all objects, at the same
// time: what belongs to one reconcile is in the [Request]. Further abilities are optional
// interfaces: [Cleaner], [PostStep], [ConditionDeclarer] and [Watcher].
type Step[T client.Object] interface {
	// Name names the step: short, unique in its engine, without a line break.
	Name() string

	// Do brings the object nearer to what its spec wants. Called when the object is not being
	// deleted, and the steps before it have passed.
	//
	//   - It must be idempotent: it is called again after every error, crash and change.
	//   - It may change the metadata and the status of req.Object, which the engine saves, also
	//     after an error. It must not change the spec, which belongs to the user.
	//   - Its outcome is one of package ctrlkit: an error, a wait or a requeue ends the sequence of
	//     steps, ctrlkit.ContinueAndRequeueAfter does not.
	Do(ctx context.Context, req *Request[T]) (ctrl.Result, error)
}

// A Cleaner is a [Step] that makes something which nothing else removes when the object is deleted.
// An engine with such a step puts its finalizer on each object, before any Do.
type Cleaner[T client.Object] interface {
	Step[T]
	// Cleanup removes what Do has made. Called when the object is being deleted and has our
	// finalizer, the last step first.
	//
	//   - It must be idempotent, and do no harm when Do was never called.
	//   - It is also called for an object that is already gone because its finalizer was lost: then
	//     changes of req.Object are not saved.
	//   - It does not begin when another client has removed the finalizer: that is a decision to
	//     keep what Do has made.
	//   - An error, a wait, a requeue or an exit ends the sequence: the finalizer stays, a
	//     condition says why, and Cleanup is called again; after an exit, by the next event.
	//   - ctrlkit.ContinueAndRequeueAfter does not end it, and its time is not used: the object is
	//     removed.
	Cleanup(ctx context.Context, req *Request[T]) (ctrl.Result, error)
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
