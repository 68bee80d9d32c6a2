// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A Step is a part of the work for an object of type T. One value serves all objects, at the same
// time: what belongs to one reconcile is in the [Request]. What a step can do besides are optional
// interfaces: [Cleaner], [PostStep] and [ConditionDeclarer].
type Step[T client.Object] interface {
	// Name names the step: short, unique in its engine, without a line break.
	Name() string

	// Do brings the object nearer to what its spec wants. It must be idempotent: it is called again
	// after every error, crash and change. It may change the metadata and the status of req.Object,
	// which the engine saves, also after an error; never its spec, which is its user's.
	//
	// The outcome is one of package ctrlkit: an error, a wait or a requeue ends the sequence of
	// steps, ctrlkit.ContinueAndRequeueAfter does not.
	Do(ctx context.Context, req *Request[T]) (ctrl.Result, error)
}

// A Cleaner is a [Step] that leaves something behind which nobody else removes when the object is
// deleted. With one of them among its steps, an engine puts its finalizer on each object, before
// any Do.
type Cleaner[T client.Object] interface {
	Step[T]
	// Cleanup removes what Do has made. It is called for objects that are being deleted and have
	// our finalizer, the last step first, and for an object that is already gone because its
	// finalizer was lost: then changes of req.Object are not saved. It does not begin when another
	// client has removed the finalizer: that is a decision to keep what Do has made. It must be
	// idempotent, and do no harm when Do was never called.
	//
	// An error, a wait, a requeue or an exit ends the sequence: the finalizer stays, a condition
	// says why, and Cleanup is called again; after an exit, by the next event.
	// ctrlkit.ContinueAndRequeueAfter does not end it, and its time is not used: the object goes.
	Cleanup(ctx context.Context, req *Request[T]) (ctrl.Result, error)
}

// A Poster is a [Step] with work for the end of each reconcile.
type PostStep[T client.Object] interface {
	Step[T]
	// Post is called before the object is saved, after Do and after Cleanup, whatever they have
	// returned, and of each step, whatever the others have returned; not when a reconcile ends
	// before its steps because nothing has changed. Req.Failure says what has failed so far.
	Post(ctx context.Context, req *Request[T]) error
}

// A ConditionDeclarer is a [Step] that keeps conditions of the object.
type ConditionDeclarer[T client.Object] interface {
	Step[T]
	// Conditions declares them. It is called once, by [New].
	Conditions() []condition.Declaration
}

// Func returns a step that consists of its Do.
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
