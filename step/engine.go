// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/internal/engine/cause"
	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Options configure an engine. Name and Client are required, all else may be zero.
type Options[T client.Object] struct {
	// Name is the name of the controller: of its metrics, its field manager and its finalizer. It
	// is a DNS label, unique in the process.
	Name string

	// Client reads from a cache, as the client of a manager does, and writes.
	Client client.Client

	// APIReader reads from the API server instead of the cache: use Manager.GetAPIReader. Steps
	// find it in their request. The engine itself reads through it
	//
	//   - once for each object and process, before the first write for the object, to find out
	//     whether the cache is stale: after a restart it may lag as far as an API server does, and
	//     what a step does for an object that is not wanted any more can't always be undone. A
	//     resource version that is newer than a write of this process to an object of the kind
	//     shows that without a read;
	//   - before a cleanup, to confirm that the object still has the finalizer;
	//   - after a conflict, to apply what has changed to the newest version;
	//   - when it suspects a hot loop, to find out what a write to an object that is in no cache
	//     changes, and which client has written it.
	APIReader client.Reader

	// Cache is the cache of the manager: use Manager.GetCache. With it, a kind that a step watches and
	// that the API server does not have stops only the objects that need it: the watch begins, and all
	// objects are reconciled, at most ten seconds after its definition is there. Without it, such a
	// kind ends the operator two minutes after its start.
	Cache cache.Cache

	// Kind is the kind of objects of the type *unstructured.Unstructured, with its version, and empty
	// for any other T.
	//
	//   - The definition of the kind has the field status.conditions, or Partial is set.
	//   - The generation that the status is about is kept once a step has set it in
	//     status.observedGeneration.
	//   - The client of a manager reads such objects from its cache if its options say so:
	//     client.CacheOptions.Unstructured. Otherwise each reconcile reads from the API server.
	Kind schema.GroupVersionKind

	// Finalizer keeps an object until its cleanup is done, if a step has a Cleanup.
	//
	//   - It is a qualified name. By default it is the API group of T and Name,
	//     "example.com/backup".
	//   - Without a Cleaner it must be empty.
	//   - When it changes, objects keep the old one: add that to RetiredFinalizers.
	Finalizer string

	// RetiredFinalizers are finalizers that older versions of the operator have put on objects:
	// under another name, or when there was still a Cleaner. They are removed: from a living
	// object by the next reconcile, from one that is being deleted after its cleanup, if there is
	// any.
	RetiredFinalizers []string

	// Recorder records Kubernetes events. Without it there are none.
	//
	//   - There is one for each condition that becomes unhealthy with severity Warning or Error.
	//   - There is one for each finalizer that another client has removed, and for each hot loop.
	//   - Waits and other conditions of severity Info cause none.
	Recorder events.EventRecorder

	// Observers receive the events of the journal.
	Observers []journal.Observer

	// Failures classifies errors.
	Failures failure.Table

	// Retired are types of conditions that older versions of the operator kept. They are removed
	// from objects.
	Retired []string

	// SkipUnchanged ends a reconcile before its steps when nothing can have changed for them: the
	// reconcile before did all its work without a write, a failure or a wait, and nothing that it
	// read has changed since, neither the object nor what was read through Request.Client. The
	// resource versions in the cache show that. It is correct only if the steps depend on nothing
	// else:
	//
	//   - They read through Request.Client, from its cache.
	//   - They request a time when they depend on the time. A requested time is kept.
	//   - They request a time within which to observe what is outside the cluster.
	//
	// An object of which no watch has reported a change costs no reads. For that, Client is that
	// of the manager of the controller.
	//
	// Package sim finds out if they depend on more. As a precaution the steps run once an hour all
	// the same, if anything triggers a reconcile.
	SkipUnchanged bool

	// Watches are watched for the engine, in addition to what its steps declare.
	Watches []Watch

	// Unwatched are kinds that the steps read on purpose although nothing watches them, as empty
	// objects: what they read of them does not change, or a change need not be noticed until the
	// object is reconciled for another reason.
	//
	//	Unwatched: []client.Object{&corev1.Node{}, &corev1.Namespace{}},
	//
	// Of all other kinds the engine reports, in the log and in the journal, that a step reads one
	// whose changes reconcile nothing; see [Engine.Complete].
	Unwatched []client.Object

	// Partial is for one of several engines that reconcile the objects of one kind, such as those
	// of package handlers. The engine keeps the conditions that its steps declare, and leaves alone
	// what can have one author only: Ready, Reconciling, Stalled, Paused and the observed
	// generation of the status. Failures are in the declared conditions, the log and the journal.
	Partial bool

	// Uses are what the steps do with objects of other kinds, where they do not declare it
	// themselves: see Step.Uses and [Engine.Needs].
	Uses []Use

	// Shard is the part of a ring whose objects the engine reconciles; see
	// operator.NewShardManager. Without one, as without a ring, every object is the engine's own.
	//
	//   - An object that the sharder moves is handed over between two reconciles, after a pending
	//     cleanup of an earlier object of its name, also while all workers are busy with others. No
	//     step runs for it, and nothing is kept of it.
	//   - An object that has left the cache is not taken for a deleted one before the API server was
	//     asked. That needs APIReader.
	//   - An engine that [Engine.Complete] does not connect needs [shard.Shard.Claim].
	Shard *shard.Shard

	// StepTimeout is how long Do, Cleanup, Claim or Post of one step may take, 5 minutes if it is
	// zero. After that its context is done. Each is reported while it runs, in the log, in the journal
	// and with an event: after a fifth of the time, and again if it ignores its context.
	StepTimeout time.Duration

	// Controller are options for the controller that [Engine.Complete] makes.
	Controller controller.Options
}

// An Engine reconciles the objects of one kind in steps. It is made by [New], and safe for
// concurrent use.
type Engine[T client.Object] struct {
	options    Options[T]
	plan       *plan[T]
	gates      []gate[T]
	resource   resource[T]
	finalizers finalizers
	observer   journal.Observer
	limiter    *failure.Limiter[reconcile.Request]
	memories   memories[T]
	causes     cause.Recorder
	feed       track.Feed // of the event filter
	sees       bool       // the feed misses no event
	uses       uses
	claim      *claim // to the computed conditions, once the controller is made
	unwatched  unwatched
	readers    map[schema.GroupKind]*references.Readers // of the kinds with Watch.Read, once the controller is made
	drain      *drain                                   // nil without a shard, and if the engine has no controller
}

var _ reconcile.Reconciler = (*Engine[client.Object])(nil)

// New returns an engine of steps. The error names all mistakes in the options and the steps.
func New[T client.Object](options Options[T], steps ...Step[T]) (*Engine[T], error) {
	if options.Recorder != nil {
		options.Recorder = recorder{options.Recorder}
	}
	e := &Engine[T]{options: options, plan: newPlan(steps), gates: gates[T](), observer: journal.Observers(options.Observers...)}
	e.limiter = failure.NewLimiter[reconcile.Request]()
	var mistakes []error
	if len(validation.IsDNS1123Label(options.Name)) > 0 {
		mistakes = append(mistakes, fmt.Errorf("name %q: a controller's name is a DNS label, for example \"backup\"", options.Name))
	}
	if options.Shard != nil && options.APIReader == nil {
		mistakes = append(mistakes, errors.New("a shard without APIReader, which shows whether an object was moved or deleted: set it to Manager.GetAPIReader"))
	}
	if options.StepTimeout < 0 {
		mistakes = append(mistakes, fmt.Errorf("step timeout %v: it is negative; zero is %v", options.StepTimeout, defaultStepTimeout))
	}
	mistakes = append(mistakes, checkSteps(e.plan)...)
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, errors.Join(append(mistakes, fmt.Errorf("type %v: an engine is for a pointer to a struct, such as *v1.Backup", t))...)
	}
	if options.Client == nil {
		return nil, errors.Join(append(mistakes, errors.New("no client: use that of the manager"))...)
	}
	r := &e.resource
	var err error
	if r.gvk, err = r.kindOf(options.Client.Scheme(), options.Kind); err != nil {
		return nil, errors.Join(append(mistakes, err)...)
	}
	obj := r.newObject()
	r.client, r.apiReader, r.owner = options.Client, options.APIReader, options.Name
	r.kind, r.status = r.gvk.GroupKind(), statusTypeOf(obj)
	if e.unwatched.declared, err = kindsOf(options.Client, options.Unwatched); err != nil {
		mistakes = append(mistakes, fmt.Errorf("Options.Unwatched: %w", err))
	}
	c := &e.causes
	c.Controller, c.Kind, c.Client, c.Observer = options.Name, r.kind, options.Client, e.observer
	c.Namespaced = references.NewScope(options.Client, obj).Namespaced
	standard := ""
	if r.kind.Group != "" {
		standard = r.kind.Group + "/" + options.Name
	}
	// A kind of the core group has no standard name. It need not have one because of a step that
	// may never have something to clean up.
	cleans := e.plan.cleans || e.plan.mayClean && cmp.Or(options.Finalizer, standard) != ""
	if e.finalizers, err = newFinalizers(options.Finalizer, standard, "example.com/"+options.Name, options.RetiredFinalizers, cleans); err != nil {
		mistakes = append(mistakes, err)
	}
	if _, err := condition.Of(obj); err != nil && len(e.plan.declared) > 0 {
		mistakes = append(mistakes, fmt.Errorf("a step keeps conditions: %w", err))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, fmt.Errorf("engine %q: %w", options.Name, err)
	}
	return e, nil
}

func checkSteps[T client.Object](p *plan[T]) []error {
	var mistakes []error
	seen := make(map[string]bool)
	for _, p := range p.parts {
		name := p.Name
		switch {
		case name == "" || strings.ContainsAny(name, "\n\r"):
			mistakes = append(mistakes, fmt.Errorf("step %d has the name %q: a name is a few words on one line", p.index+1, name))
		case seen[name]:
			mistakes = append(mistakes, fmt.Errorf("two steps have the name %q: errors and explanations could not distinguish them", name))
		}
		seen[name] = true
		if p.Cleanup == nil && (p.Claim != nil || p.Cleans != nil) {
			mistakes = append(mistakes, fmt.Errorf("step %q has a Claim or a Cleans without a Cleanup: they are for what it removes", name))
		}
		if p.Err != nil {
			mistakes = append(mistakes, fmt.Errorf("step %q: %w", name, p.Err))
		}
	}
	if err := condition.Check(p.declared); err != nil {
		mistakes = append(mistakes, err)
	}
	return mistakes
}

// Complete makes a controller of the engine. It replaces options that b was given: use
// Options.Controller.
//
//	b := ctrl.NewControllerManagedBy(mgr).For(&v1.Database{}).Owns(&corev1.Secret{})
//	err := engine.Complete(b)
//
// Its rules:
//
//   - The controller has the rate limiter of the engine, and its event filter, which records what
//     triggers each reconcile and the last states of objects that are gone without their cleanup.
//   - The watches of Step.Watches and Options.Watches are set up.
//   - Watches with a handler of your own record causes if the handler went through
//     [Engine.WrapHandler].
//   - An event filter that b was given before hides events from that of the engine. An event that
//     it hides is noticed when the object is reconciled for another reason, as without the engine.
//     Prefer builder.WithPredicates, for each watch: with Options.SkipUnchanged, an idle object
//     then costs no reads.
//   - A kind that a step reads through its request, and that no watch of b or of the steps reports,
//     is reported once in the log, and in the journal of each object concerned, when a reconcile
//     ends without a requested time: what it waits for may come unnoticed. Watch the kind, request
//     a time, or list it in Options.Unwatched. With a source in b whose kind can't be known, such as
//     a channel, nothing is reported.
//   - A second engine of the same manager for a kind that has conditions is an error: both would
//     compute Ready.
func (e *Engine[T]) Complete(b *builder.Builder) error {
	options := e.options.Controller
	if options.RateLimiter == nil {
		options.RateLimiter = e.Limiter()
	}
	if prioritized, known := prioritizedBy(b); known {
		managers.SetQueue(&options, prioritized)
	}
	if err := e.claimConditions(); err != nil {
		return err
	}
	if err := e.options.Shard.Claim(e.resource.kind, e.options.Name); err != nil {
		return err
	}
	kinds, owned, known := watchedBy(b, e.options.Client)
	declared, declaredOwned, err := e.watchDeclared(b)
	if err != nil {
		return err
	}
	filter := eventFilter[T]{engine: e}
	if known {
		kinds, owned = append(kinds, declared...), append(owned, declaredOwned...)
		filter.alone = isAlone(e.resource.kind, kinds, owned)
		e.unwatched.watch(e.resource.kind, kinds, owned)
	}
	e.sees = !filtered[T](b)
	if e.options.Shard != nil {
		e.drain = &drain{handOver: e.handOverIdle, taken: map[types.NamespacedName]bool{}}
		b.WatchesRawSource(e.drain)
	}
	return b.Named(e.options.Name).WithOptions(options).WithEventFilter(filter).Complete(e)
}

// Finalizer returns the finalizer that the engine puts on its objects, empty if no step has
// something to clean up.
func (e *Engine[T]) Finalizer() string { return e.finalizers.own }

// Limiter returns the rate limiter for the queue of the controller, for programs that do not use
// [Engine.Complete]. Without it, failures are retried with the backoff of controller-runtime,
// whatever their class.
func (e *Engine[T]) Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return queueLimiter{e.limiter}
}
