// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// Options configure [New]. Identity is required, all else may be zero.
type Options[T client.Object] struct {
	// Identity says by what the system identifies resources.
	Identity Identity[T]

	// Operator identifies this installation of the operator among others that watch the same
	// objects, such as "prod/mysql-operator". Each object is marked with it when it is claimed, in the
	// annotation lifecycle.ctrlkit.dev/operator, and objects with another mark are left alone. Change
	// the annotation to hand an object over. If Operator is empty, nothing is marked or left alone.
	Operator string

	// Policy is what holds for objects that do not say otherwise, and whose namespace does not.
	Policy policy.Defaults

	// Poll is how often a resource is observed that is as it should be, because no event reports a
	// change of it: a minute if it is zero. Each object has its own time within a tenth of that, so
	// that they do not come all at once.
	Poll time.Duration

	// PollOf returns how often the resource of an object is observed, zero for Poll: a system may be
	// asked less often for the kinds that cost. Users have the last word, with pollAnnotation.
	PollOf func(obj T) time.Duration

	// Busy is how often a resource is observed while the system changes it: five seconds if it is
	// zero.
	Busy time.Duration

	// Visible is how long the system may not show a resource that it has created: ten seconds if it
	// is zero, and at least the window of [ByTag]. Within that time nothing is created again.
	Visible time.Duration

	// Calls limit the calls of the system.
	Calls Calls[T]

	// StoresOwner says that the system stores, with each resource, what [OwnerOf] returns for the object:
	// Create and Update store it, and Observe reports it, for each resource that is up to date or
	// drifted. It is then the proof of whose a resource is. The rule "owner" of ctrlkittest.CheckClient
	// checks it. Without it, for systems that store nothing or never change what they have stored, each
	// resource has a claim: a Lease in ClaimNamespace, named by what identifies the resource.
	StoresOwner bool

	// Type names what the resources are in their system, such as "role" or "stream": two resources of one
	// type, System, Scope and id are the same. The kind of the objects if it is empty. Kinds, also of
	// several operators with the same ClaimNamespace, whose objects stand for resources of one type give
	// the same.
	Type string

	// Scope returns in which account, project or database of the system the id of a resource is unique.
	// Nil, or an empty text, if ids are unique in the system.
	Scope func(obj T) string

	// SharedWith are further kinds of the operator whose objects own resources of the type in a system
	// that stores owners. They are searched before an owner is taken for gone.
	SharedWith []client.Object

	// Adopt reports whether an object may adopt the resource with an id, which exists and was not made for
	// it. Opened says that the Namespace of the object lists the id in its annotation
	// external.ctrlkit.dev/adopt, or that the client reports it as Observation.Adoptable. Who may edit
	// the object decides none of these. If Adopt is nil, opened decides: what is not opened is not
	// adopted. One that returns true is for operators whose users all have the credentials of the
	// system: who may create an object then takes what these reach.
	//
	//	Adopt: func(obj *v1.Role, id string, opened bool) bool { return opened && id != "postgres" }
	Adopt func(obj T, id string, opened bool) bool

	// ClaimNamespace is where the claims are: the namespace of the operator if it is empty, which is that
	// of POD_NAMESPACE or of its service account. Who may edit Leases in it is trusted.
	ClaimNamespace string

	// Watches are those that end the waits of Connect, and that show a change; Conditions are those that
	// Connect sets. References have both of themselves.
	Watches    []step.Watch
	Conditions []condition.Declaration

	// References are those to other objects. They are awaited before the system is called, and what
	// they refer to is in use from then on: see package reference. A connector gets it from
	// Reference.Get.
	References []reference.Of[T]

	// Reads are the kinds of which Connect reads objects by name, through the client of its request, as
	// empty objects: &corev1.Secret{} for credentials. They are watched, and a change of an object that
	// was read, or that was looked for and comes later, reconciles those for which it was. Secrets are
	// among them with ConnectionSecret or Publish, for which they are watched anyway.
	//
	// The engine reports in the log a kind that Connect reads and that nothing watches.
	Reads []client.Object

	// ConnectionSecret returns the name of a Secret in the namespace of the object, to which
	// Observation.Connection is published. It belongs to the object. If it is nil, or returns an
	// empty name, nothing is published. The scheme needs the core types.
	ConnectionSecret func(obj T) string

	// Publish publishes the connection details to more than that: to several Secrets and ConfigMaps, with chosen
	// keys, also in other namespaces. Its step is to be in the engine, too.
	Publish *Publisher[T]
}

// New returns a step that keeps the resource of each object. Mistakes in the options are an error of
// step.New.
func New[T client.Object](name string, connector Connector[T], options Options[T]) step.Step[T] {
	e := newExternal(name, connector, options)
	return e.step(name, e.funcs())
}

// step returns the step that keeps the resource of each object by functions.
func (e *external[T]) step(name string, funcs Funcs[T]) step.Step[T] {
	s := Simple(name, funcs)
	s.Uses, s.Post = e.uses(), e.finish
	s.Err = errors.Join(e.options.Identity.check(), s.Err)
	return s
}

func newExternal[T client.Object](name string, connector Connector[T], options Options[T]) *external[T] {
	options.Poll, options.Busy = cmp.Or(options.Poll, time.Minute), cmp.Or(options.Busy, 5*time.Second)
	options.Visible = max(cmp.Or(options.Visible, 10*time.Second), options.Identity.window)
	e := &external[T]{connector: connector, options: options, calls: newCalls(options.Calls), memory: newMemory()}
	e.claims = &ledger{namespace: cmp.Or(options.ClaimNamespace, ownNamespace()), kind: options.Type}
	e.session = step.NewKey[*session[T]]("the resource of " + name)
	return e
}

// external keeps the resources of objects.
type external[T client.Object] struct {
	connector Connector[T]
	options   Options[T]
	calls     *calls[T]
	memory    *memory
	claims    *ledger
	reported  sync.Map // by UID: the call whose beginning was reported and whose end was not
	session   step.Key[*session[T]]
}

// funcs are what [Simple] calls. There is no Claimed: annotations that are not there show nothing,
// because another client may have removed them, and Delete finds out.
func (e *external[T]) funcs() Funcs[T] {
	return Funcs[T]{
		Claim: e.claim, CreateOrUpdate: e.createOrUpdate, UpdateStatus: e.updateStatus, Release: e.release, Delete: e.delete,
		ChecksVerbs: true, Operator: e.options.Operator, Policy: e.options.Policy, Refresh: e.options.Poll,
		Watches: e.watches(), Conditions: e.conditions(),
	}
}

// watches are those of the connector and of what it reads, and that of the Secrets which are
// published.
func (e *external[T]) watches() []step.Watch {
	all := slices.Clone(e.options.Watches)
	reads, owned := e.options.Reads, e.options.ConnectionSecret != nil
	if (owned || e.options.Publish != nil) && !slices.ContainsFunc(reads, isSecret) {
		reads = append(slices.Clip(reads), &corev1.Secret{})
	}
	for _, obj := range reads {
		all = append(all, step.Watch{Object: obj, Read: true, Owned: owned && isSecret(obj)})
	}
	for _, r := range e.options.References {
		all = append(all, r.Watches()...)
	}
	return indexed(all)
}

// uses are what the connector does, and what publishing needs.
func (e *external[T]) uses() []step.Use {
	var all []step.Use
	for _, r := range e.options.References {
		all = append(all, r.Uses()...)
	}
	if !e.options.StoresOwner {
		all = append(all, step.Use{Object: emptyLease(), Namespace: e.claims.namespace, Verbs: []string{"get", "list", "create", "update", "delete"}, By: "claims its resources"})
	}
	if e.options.ConnectionSecret != nil {
		owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
		all = append(all,
			step.Use{Object: &corev1.Secret{}, Verbs: []string{"create", "patch"}, By: "publishes the connection details"},
			step.Use{Object: owner, Subresource: "finalizers", Verbs: []string{"update"}, By: "its Secrets block the deletion of their owner"})
	}
	return all
}

// conditions are those of this package, and those of the connector.
func (e *external[T]) conditions() []condition.Declaration {
	all := append(declarations(), e.options.Conditions...)
	for _, r := range e.options.References {
		all = append(all, r.Conditions()...)
	}
	return all
}

// claim awaits the references, observes the resource, and
// records the intent to create one if there is none.
func (e *external[T]) claim(ctx context.Context, req *step.Request[T]) error {
	if err := e.await(ctx, req); err != nil {
		return err
	}
	s, err := e.open(ctx, req)
	if err == nil {
		err = s.find(ctx)
	}
	if err != nil {
		return err
	}
	if !s.seen.exists() {
		if err := req.EnsureFresh(ctx); err != nil { // an object that is gone must not get a resource
			return err
		}
	}
	return s.intend(ctx)
}

// claimed reports whether there may be a resource of an object that is being deleted.
func (e *external[T]) claimed(req *step.Request[T]) bool {
	obj := req.Object
	if e.unused(obj) {
		return false
	}
	if IDOf(obj) != "" || obj.GetAnnotations()[IntentAnnotation] != "" || e.claims.of(obj.GetUID()) != nil {
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

// createOrUpdate creates the resource, or updates it.
func (e *external[T]) createOrUpdate(ctx context.Context, req *step.Request[T]) error {
	s, ok := step.Lookup(req, e.session)
	if !ok {
		return errors.New("the resource was not observed")
	}
	confirm := reference.Of[T].Hold
	if s.seen.State == Absent && !s.recent() {
		confirm = reference.Of[T].Confirm
	}
	if err := e.eachReference(req, func(r reference.Of[T]) error { return confirm(r, ctx, req) }); err != nil {
		return err
	}
	err := s.reconcile(ctx)
	if _, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err); failed == nil && s.seen.State == UpToDate {
		e.settle(req)
		if s.made {
			e.memory.change(req.Object.GetUID(), func(a *attempt) { a.fresh = &observed{s.seen, s.at} })
		}
	}
	return err
}

// updateStatus observes the resource.
func (e *external[T]) updateStatus(ctx context.Context, req *step.Request[T]) error {
	if err := e.observeReferences(ctx, req); err != nil {
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
	if err := (ownership[T]{s}).look(ctx); err != nil {
		return err
	}
	if why := PolicyOf(req).Refusal(policy.VerbCreate); s.seen.State == Absent && why != "" {
		s.markAbsent(why)
		return nil
	}
	if s.mark(); s.seen.State == UpToDate {
		e.settle(req)
	}
	return shareObserved(ctx, s)
}

// release removes the stored owner of the resource, or its claim.
func (e *external[T]) release(ctx context.Context, req *step.Request[T]) error {
	if err := e.loadClaims(ctx, req); err != nil || IDOf(req.Object) == "" && e.claims.of(req.Object.GetUID()) == nil {
		return err
	}
	s, err := e.open(ctx, req)
	if err != nil {
		return errors.Join(err, ownership[T]{&session[T]{external: e, req: req}}.endClaim(ctx))
	}
	return ownership[T]{s}.release(ctx)
}

// delete deletes the resource.
func (e *external[T]) delete(ctx context.Context, req *step.Request[T]) error {
	if err := e.loadClaims(ctx, req); err != nil {
		return withoutSystem(err)
	}
	claimed := e.claimed(req)
	if !claimed && !e.mayBeFound(req) {
		return nil // no resource was ever made
	}
	if err := afterOthers(req); err != nil {
		return err
	}
	s, err := e.open(ctx, req)
	if err == nil {
		err = s.find(ctx)
	}
	switch {
	case err != nil && !claimed && !canAnswer(err):
		return nil // nothing shows that there is one, and the system may never answer
	case err != nil:
		return withoutSystem(err)
	}
	err = deletion[T]{s}.run(ctx)
	if err == nil {
		e.memory.forget(req.Object.GetUID())
		e.calls.forget(req.Object.GetUID())
	}
	return err
}

// finish releases the client.
func (e *external[T]) finish(ctx context.Context, req *step.Request[T]) error {
	if s, ok := step.Lookup(req, e.session); ok {
		noteChange(ctx, s, nil)
		reporter[T]{s}.ended()
		if err := s.close(); err != nil { // what was observed is true all the same
			req.Logger.Error(err, "The client of the resource was not closed")
		}
	}
	return nil
}

// registrarOf returns what reads and writes claims on behalf of a reconcile.
func (e *external[T]) registrarOf(req *step.Request[T]) registrar {
	return registrar{e.claims, liveReader(req), req.Client}
}

// loadClaims reads the claims, once in a process.
func (e *external[T]) loadClaims(ctx context.Context, req *step.Request[T]) error {
	if e.options.StoresOwner {
		return nil
	}
	r := e.registrarOf(req)
	if err := r.load(ctx, req.Object); err != nil {
		return err
	}
	return migrate(ctx, e, r, req)
}

// open connects to the system. Post closes the connection.
func (e *external[T]) open(ctx context.Context, req *step.Request[T]) (*session[T], error) {
	if s, ok := step.Lookup(req, e.session); ok {
		return s, nil // Claim has opened it
	}
	s := &session[T]{external: e, req: req}
	if err := e.loadClaims(ctx, req); err != nil {
		return nil, err
	}
	err := e.calls.connect(ctx, req.Object, func(ctx context.Context) (err error) {
		s.client, err = e.connector.Connect(ctx, req)
		return err
	})
	if err != nil {
		err = e.notConnected(ctx, req, err)
		markFailed(req, "connect", err)
		return nil, err
	}
	step.Put(req, e.session, s)
	return s, nil
}
