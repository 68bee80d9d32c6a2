// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/permission"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/publish"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// Options configure [New]. Identity is required, all else may be zero.
type Options[T client.Object] struct {
	// Identity says by what the system identifies resources.
	Identity Identity[T]

	// Lifecycle are the options of the floor below: which installation of the operator owns an
	// object, and what holds for objects whose users say nothing about their policy.
	Lifecycle lifecycle.Options

	// Poll is how often a resource is observed that is as it should be, because no event reports a
	// change of it: a minute if it is zero. Each object has its own time within a tenth of that, so
	// that they do not come all at once.
	Poll time.Duration

	// PollOf returns how often the resource of an object is observed, zero for Poll: a system may be
	// asked less often for the kinds that cost. Users have the last word, with PollAnnotation.
	PollOf func(obj T) time.Duration

	// Busy is how often a resource is observed while the system changes it: five seconds if it is
	// zero.
	Busy time.Duration

	// Visible is how long the system may not show a resource that it has created: ten seconds if it
	// is zero, and at least the window of [ByTag]. Within that time nothing is created again.
	Visible time.Duration

	// Calls limit the calls of the system.
	Calls Calls[T]

	// References are those to other objects. They are awaited before the system is called, and what
	// they refer to is in use from then on: see package reference. A connector gets it from
	// Reference.Get.
	References []reference.Of[T]

	// ConnectionSecret returns the name of a Secret in the namespace of the object, to which
	// Observation.Connection is published. It belongs to the object. If it is nil, or returns an
	// empty name, nothing is published. The scheme needs the core types.
	ConnectionSecret func(obj T) string

	// Publish publishes the connection details to more than that: to several Secrets and ConfigMaps, with chosen
	// keys, also in other namespaces. Its step is to be in the engine, too.
	Publish *publish.Publisher[T]
}

// New returns a step that keeps the resource of each object. It panics if the options are invalid,
// which no input can cause.
func New[T client.Object](name string, connector Connector[T], options Options[T]) step.Cleaner[T] {
	e := newExternal(name, connector, options)
	return lifecycle.New(name, e, e.options.Lifecycle)
}

func newExternal[T client.Object](name string, connector Connector[T], options Options[T]) *external[T] {
	if err := options.Identity.check(); err != nil {
		panic(fmt.Sprintf("external: %s: %v", name, err))
	}
	options.Poll, options.Busy = cmp.Or(options.Poll, time.Minute), cmp.Or(options.Busy, 5*time.Second)
	options.Visible = max(cmp.Or(options.Visible, 10*time.Second), options.Identity.window)
	options.Lifecycle.Refresh = cmp.Or(options.Lifecycle.Refresh, options.Poll)
	e := &external[T]{connector: connector, options: options, calls: newCalls(options.Calls), memory: newMemory()}
	e.session = step.NewKey[*session[T]]("the resource of " + name)
	return e
}

// external implements the interfaces of package lifecycle.
type external[T client.Object] struct {
	connector Connector[T]
	options   Options[T]
	calls     *calls[T]
	memory    *memory
	marks     atomic.Bool // the system has shown the owner of a resource
	reported  sync.Map    // by UID: the call whose beginning was reported and whose end was not
	session   step.Key[*session[T]]
}

var (
	_ lifecycle.Claimer[client.Object]       = (*external[client.Object])(nil)
	_ lifecycle.StatusUpdater[client.Object] = (*external[client.Object])(nil)
	_ lifecycle.VerbChecker[client.Object]   = (*external[client.Object])(nil)
	_ lifecycle.Releaser[client.Object]      = (*external[client.Object])(nil)
)

// ChecksVerbs implements [lifecycle.VerbChecker].
func (e *external[T]) ChecksVerbs() {}

// Watches declares the watches of the connector, and that of the Secrets which are published.
func (e *external[T]) Watches() []step.Watch {
	var all []step.Watch
	if w, ok := e.connector.(interface{ Watches() []step.Watch }); ok {
		all = w.Watches()
	}
	if e.options.ConnectionSecret != nil {
		all = append(all, step.Watch{Object: &corev1.Secret{}, Owned: true})
	}
	for _, r := range e.options.References {
		all = append(all, r.Watches()...)
	}
	return all
}

// Uses declares what the connector does, and what publishing needs.
func (e *external[T]) Uses() []permission.Use {
	var all []permission.Use
	if d, ok := e.connector.(interface{ Uses() []permission.Use }); ok {
		all = d.Uses()
	}
	for _, r := range e.options.References {
		all = append(all, r.Uses()...)
	}
	if e.options.ConnectionSecret != nil {
		owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
		all = append(all,
			permission.Use{Object: &corev1.Secret{}, Verbs: []string{"create", "patch"}, By: "publishes the connection details"},
			permission.Use{Object: owner, Subresource: "finalizers", Verbs: []string{"update"}, By: "its Secrets block the deletion of their owner"})
	}
	return all
}

// Conditions declares the conditions of this package, and those of the connector.
func (e *external[T]) Conditions() []condition.Declaration {
	all := declarations()
	if d, ok := e.connector.(interface {
		Conditions() []condition.Declaration
	}); ok {
		all = append(all, d.Conditions()...)
	}
	for _, r := range e.options.References {
		all = append(all, r.Conditions()...)
	}
	return all
}

// Claim implements [lifecycle.Claimer]: it awaits the references, observes the resource, and
// records the intent to create one if there is none.
func (e *external[T]) Claim(ctx context.Context, req *step.Request[T]) error {
	if err := e.await(ctx, req); err != nil {
		return err
	}
	s, err := e.open(ctx, req)
	if err != nil {
		return err
	}
	before := e.memory.last(req.Object.GetUID()) // find reads the annotations
	if err := s.find(ctx); err != nil {
		return err
	}
	if !s.seen.exists() {
		if err := req.EnsureFresh(ctx); err != nil { // an object that is gone must not get a resource
			return err
		}
		if err := (ownership[T]{s}).wrongID(before); err != nil {
			return err
		}
	}
	return s.intend(ctx)
}

// Claimed implements [lifecycle.Claimer]. Annotations that are not there show nothing, because
// another client may have removed them: Delete finds out.
func (e *external[T]) Claimed(T) bool { return true }

// claimed reports whether there may be a resource of an object that is being deleted.
func (e *external[T]) claimed(req *step.Request[T]) bool {
	obj := req.Object
	if e.unused(obj) {
		return false
	}
	if IDOf(obj) != "" || obj.GetAnnotations()[IntentAnnotation] != "" {
		return true
	}
	if e.memory.last(obj.GetUID()).step != "" {
		_, _, ok := e.memory.restore(obj.GetUID())
		return ok
	}
	return e.options.Identity.class.witness(req)
}

// mayBeFound reports whether there may be a resource of an object that is being deleted although
// nothing shows a claim, and the system shows whose it is: another client may have removed the
// annotations before the process ended that knew them.
func (e *external[T]) mayBeFound(req *step.Request[T]) bool {
	return e.options.Identity.class.findable() && req.HasFinalizer() && !e.unused(req.Object)
}

// unused reports whether a reference shows that no resource was made of an object.
func (e *external[T]) unused(obj T) bool {
	return slices.ContainsFunc(e.options.References, func(r reference.Of[T]) bool { return r.Unused(obj) })
}

// CreateOrUpdate implements [lifecycle.Reconciler].
func (e *external[T]) CreateOrUpdate(ctx context.Context, req *step.Request[T]) (ctrl.Result, error) {
	s, ok := step.Lookup(req, e.session)
	if !ok {
		return ctrl.Result{}, errors.New("the resource was not observed")
	}
	confirm := reference.Of[T].Hold
	if s.seen.State == Absent && !s.recent() {
		confirm = reference.Of[T].Confirm
	}
	if err := e.eachReference(req, func(r reference.Of[T]) error { return confirm(r, ctx, req) }); err != nil {
		return ctrl.Result{}, err
	}
	result, err := s.reconcile(ctx)
	if _, failed := ctrlkit.IgnoreExit(result, err); failed == nil && s.seen.State == UpToDate {
		e.settle(req)
		if s.made {
			e.memory.change(req.Object.GetUID(), func(a *attempt) { a.fresh = &observed{s.seen, s.at} })
		}
	}
	return result, err
}

// UpdateStatus implements [lifecycle.StatusUpdater].
func (e *external[T]) UpdateStatus(ctx context.Context, req *step.Request[T]) error {
	if err := e.resolve(ctx, req); err != nil {
		return err
	}
	s, err := e.open(ctx, req)
	if err != nil {
		return err
	}
	if s.seen.State == 0 { // Claim has not observed it
		if err := s.find(ctx); err != nil {
			return err
		}
	}
	if why := lifecycle.PolicyOf(req).Refusal(policy.VerbCreate); s.seen.State == Absent && why != "" {
		s.markAbsent(why)
		return nil
	}
	s.mark()
	return shareObserved(ctx, s)
}

// Release implements [lifecycle.Releaser].
func (e *external[T]) Release(ctx context.Context, req *step.Request[T]) error {
	if IDOf(req.Object) == "" {
		return nil
	}
	s, err := e.open(ctx, req)
	if err != nil {
		return err
	}
	releaser, ok := s.client.(Releaser[T])
	if !ok {
		return nil
	}
	if err := s.find(ctx); err != nil || !s.seen.exists() || (ownership[T]{s}).standing() != ours {
		return err
	}
	return s.call(ctx, "release", func(ctx context.Context) error { return releaser.Release(ctx, req.Object, s.id) })
}

// Delete implements [lifecycle.Reconciler].
func (e *external[T]) Delete(ctx context.Context, req *step.Request[T]) (ctrl.Result, error) {
	claimed := e.claimed(req)
	if !claimed && !e.mayBeFound(req) {
		return ctrlkit.NoRequeue() // no resource was ever made
	}
	if err := afterOthers(req); err != nil {
		return ctrl.Result{}, withoutSystem(err)
	}
	s, err := e.open(ctx, req)
	if err == nil {
		err = s.find(ctx)
	}
	switch {
	case err != nil && !claimed && !canAnswer(err):
		return ctrlkit.NoRequeue() // nothing shows that there is one, and the system may never answer
	case err != nil:
		return ctrl.Result{}, withoutSystem(err)
	}
	result, err := s.delete(ctx)
	if err == nil && result.IsZero() {
		e.memory.forget(req.Object.GetUID())
		e.calls.forget(req.Object.GetUID())
	}
	return result, err
}

// Post releases the client.
func (e *external[T]) Post(ctx context.Context, req *step.Request[T]) error {
	if s, ok := step.Lookup(req, e.session); ok {
		noteChange(ctx, s, nil)
		reporter[T]{s}.ended()
		if err := s.close(); err != nil { // what was observed is true all the same
			req.Logger.Error(err, "The client of the resource was not closed")
		}
	}
	return nil
}

// open connects to the system. Post closes the connection.
func (e *external[T]) open(ctx context.Context, req *step.Request[T]) (*session[T], error) {
	if s, ok := step.Lookup(req, e.session); ok {
		return s, nil // Claim has opened it
	}
	s := &session[T]{external: e, req: req}
	err := e.calls.connect(ctx, req.Object, func(ctx context.Context) (err error) {
		s.client, err = e.connector.Connect(ctx, req)
		return err
	})
	if err != nil {
		err = fmt.Errorf("connecting: %w", failure.AppendRemedy(err))
		markFailed(req.Conditions, "connect", err)
		return nil, err
	}
	step.Put(req, e.session, s)
	return s, nil
}
