// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// An engine is that of a handler, whatever its type is.
type engine interface {
	reconcile.Reconciler
	Limiter() workqueue.TypedRateLimiter[reconcile.Request]
	Finalizer() string
}

// StepsOptions are options of [Steps]. All may be zero.
type StepsOptions[T client.Object] struct {
	// Kind is the kind of objects for a T that can stand for any.
	Kind schema.GroupVersionKind

	// Finalizer is that of the engine: see step.Options. For a kind without a group it is
	// handlers.ctrlkit.dev/ and the names of the registry, the kind and the handler by default.
	Finalizer string

	// Selects returns for which objects the handler is. An object that has the finalizer is
	// cleaned up, also if it is not selected any more.
	Selects func(obj T) bool

	// Related are watches of other objects for whose changes the steps are run, beside those that the
	// steps declare themselves.
	Related []step.Watch

	// OnGone is called for the name of an object that is gone; see [Handler].
	OnGone func(ctx context.Context, name client.ObjectKey) error

	// Complete is true if this handler is the only one of the process that computes Ready and its
	// kin for the kind. By default the conditions that the steps declare are kept, and no others.
	Complete bool

	// SkipUnchanged is that of step.Options.
	SkipUnchanged bool

	// Unwatched is that of step.Options: kinds that the steps read on purpose although nothing
	// watches them. What Related names is watched.
	Unwatched []client.Object

	// Resync has the engine reconcile unchanged objects, too, when the informer repeats them: see
	// [KindOptions.Resync]. With SkipUnchanged it finds out whether it has missed something, and runs
	// the steps only then.
	Resync bool
}

// Steps returns a handler that runs steps of package step for the objects of a kind, by an engine of
// its own: with its finalizer, conditions, one write for what has changed, and protection from hot
// loops and stale caches. It costs more memory for each object than a plain [Handler].
//
// The watches that the steps declare are set up. The engine has the name of the registry and of the
// handler, so that children of package apply are those of this handler.
func Steps[T client.Object](name string, options StepsOptions[T], steps ...step.Step[T]) Entry {
	return engineEntry[T]{name, options, steps}
}

type engineEntry[T client.Object] struct {
	name    string
	options StepsOptions[T]
	steps   []step.Step[T]
}

func (x engineEntry[T]) prepare(r *Registry) (*entry, error) {
	e, err := newEntry[T](r, x.name, x.options.Kind)
	if err != nil {
		return nil, named(x.name, err)
	}
	if e.kind.form != formTyped {
		return nil, named(x.name, fmt.Errorf("type %T: steps, and a handler with OnRemove, are for a Go type of the kind", e.object))
	}
	o := x.options
	e.gone, e.resync, e.selects = o.OnGone, o.Resync, untyped(o.Selects)
	options := step.Options[T]{
		Name: r.engineName(e.kind, x.name), Client: r.base, APIReader: r.live, Finalizer: o.Finalizer, Recorder: r.options.Recorder, Observers: r.options.Observers,
		Failures: r.options.Failures, SkipUnchanged: o.SkipUnchanged, Watches: slices.Clone(o.Related), Unwatched: o.Unwatched, Partial: !o.Complete, Shard: r.options.Shard,
	}
	cleans := slices.ContainsFunc(x.steps, step.Step[T].HasCleanup)
	if options.Finalizer == "" && cleans && e.kind.gvk.Group == "" { // the kinds of Kubernetes have no group to name it by
		options.Finalizer = "handlers.ctrlkit.dev/" + options.Name
	}
	made, err := step.New(options, x.steps...)
	if err != nil {
		return nil, named(x.name, err)
	}
	wired, err := made.Wire(e.object)
	if err != nil {
		return nil, named(x.name, err)
	}
	e.engine, e.engineName, e.filters, e.wired, e.complete = made, options.Name, wired.Filters, wired.Watches, o.Complete
	return e, nil
}

// Status returns a handler that keeps one condition of the objects of a kind, and the part of their
// status that it knows of:
//
//   - Observe sets fields of the status of obj. Changes are saved in one write with the condition;
//     without a change there is none.
//   - The condition is True when observe returns no error. An error makes it False, with the reason
//     and the severity that package failure knows, and is tried again; what was set is saved, too.
//     A wait makes it False with the reason Waiting.
//   - A conflict is no answer: the condition stays as it was.
//
// Several handlers may keep conditions of one kind, each its own. Observe must not change anything
// else of obj, and sets no conditions.
func Status[T client.Object](name, conditionType string, observe func(ctx context.Context, obj T) error, related ...step.Watch) Entry {
	s := step.Step[T]{Name: name, Conditions: []condition.Declaration{{Type: conditionType}}}
	s.Do = func(ctx context.Context, req *step.Request[T]) error {
		err := observe(ctx, req.Object)
		markStatus(req, conditionType, err)
		return err
	}
	if observe == nil {
		s.Err = errors.New("the status handler has no function")
	}
	return Steps(name, StepsOptions[T]{Related: related}, s)
}

// markStatus sets the condition of a status handler.
func markStatus[T client.Object](req *step.Request[T], conditionType string, err error) {
	if req.Conditions == nil {
		return
	}
	if err == nil {
		req.Conditions.MarkHealthy(conditionType, reasonObserved, "")
		return
	}
	if waits := ctrlkit.Waits(err); len(waits) > 0 {
		req.Conditions.MarkUnhealthy(conditionType, condition.SeverityInfo, step.ReasonWaiting, "waits for "+waits[0].For)
	}
	if _, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err); failed != nil {
		if c := req.Classify(failed); c.Class != failure.ClassConflict {
			req.Conditions.MarkUnhealthy(conditionType, c.Severity, c.Reason, failed.Error())
		}
	}
}

// reasonObserved is the reason of a condition of [Status] whose function has returned no error.
const reasonObserved = "Observed"

// Generate returns a handler that keeps the objects which should exist for each object of a kind,
// by package apply: see [apply.Children], whose arguments these are. If T has conditions, the one
// that apply.Condition names follows the set.
func Generate[T client.Object](name string, want func(ctx context.Context, req *step.Request[T], want *apply.Set) error, options ...apply.SetOption) Entry {
	return Steps(name, StepsOptions[T]{}, apply.Children(name, want, options...))
}

// engineName returns the name of an engine: a DNS label of the names of the registry, the kind and
// the handler.
func (r *Registry) engineName(key kindKey, handler string) string {
	return r.options.Name + "-" + strings.ToLower(key.gvk.Kind) + "-" + label(handler)
}

// label returns a name as a part of a DNS label.
func label(name string) string {
	var text strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			text.WriteRune(c)
		case text.Len() > 0 && !strings.HasSuffix(text.String(), "-"):
			text.WriteByte('-')
		}
	}
	return strings.TrimSuffix(text.String(), "-")
}
