// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/internal/engine/cause"
	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A kind is the controller of one kind: its handlers, on one queue.
type kind struct {
	registry *Registry
	key      kindKey
	name     string // of the controller
	feed     *feed
	own      *listener
	causes   cause.Recorder
	observer journal.Observer
	due      dues
	scope    *references.Scope
	done     chan struct{}      // closed when the controller has ended
	cancel   context.CancelFunc // nil until it is started; guarded by the registry
	begun    bool               // its first handlers are registered; guarded by the registry

	handlers atomic.Pointer[[]*entry] // in the order of their registration; never changed in place
	// events is held while an event is passed to the handlers, and while existing objects are passed
	// to new ones. It is a channel, because a handler's filter may ask what the API server serves.
	events chan struct{}

	mu    sync.Mutex // for queue
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newKind(r *Registry, key kindKey, f *feed) *kind {
	k := &kind{registry: r, key: key, name: r.controllerName(key), feed: f, observer: r.observer, done: make(chan struct{}), events: make(chan struct{}, 1)}
	k.handlers.Store(&[]*entry{})
	c := &k.causes
	c.Controller, c.Kind, c.Client, c.Observer = k.name, key.gvk.GroupKind(), r.base, r.observer
	k.scope = references.NewScope(r.base, f.object)
	c.Namespaced = k.scope.Namespaced
	k.own = &listener{events: kindEvents{k}, synced: k.addAll}
	return k
}

// start starts the controller, which ends with ctx.
func (k *kind) start(ctx context.Context) error {
	options := k.feed.options
	limiter := workqueue.TypedRateLimiter[reconcile.Request](dueLimiter{k})
	settings := controller.Options{
		Reconciler: k, MaxConcurrentReconciles: options.Workers, RateLimiter: limiter, NewQueue: options.NewQueue,
		Logger: k.registry.log, SkipNameValidation: ptr.To(true),
	}
	managers.SetQueue(&settings, nil)
	c, err := controller.NewUnmanaged(k.name, settings)
	if err != nil {
		close(k.done)
		return err
	}
	started := make(chan struct{})
	if err := c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		k.mu.Lock()
		k.queue = q
		k.mu.Unlock()
		close(started)
		return nil
	})); err != nil {
		close(k.done)
		return err
	}
	go func() {
		defer close(k.done)
		if err := c.Start(ctx); err != nil {
			k.registry.log.Error(err, "A controller has ended", "controller", k.name)
		}
	}()
	select {
	case <-started:
	case <-k.done:
	}
	if k.feed.isRunning() {
		k.addAll()
	}
	return nil
}

// add puts an object into the queue. Before all objects are known it waits: a handler would see a
// part of them.
func (k *kind) add(name client.ObjectKey, low bool) {
	if !k.feed.isKnown() {
		return
	}
	k.push(name, low)
}

func (k *kind) push(name client.ObjectKey, low bool) {
	k.mu.Lock()
	q := k.queue
	k.mu.Unlock()
	if q == nil {
		return // addAll adds it
	}
	request := reconcile.Request{NamespacedName: name}
	if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok && low {
		p.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, request)
		return
	}
	q.Add(request)
}

// addAll puts all objects of which something is due into the queue.
func (k *kind) addAll() {
	for _, name := range k.due.names() {
		k.push(name, true)
	}
}

// register adds handlers. They are called for all objects that exist.
func (k *kind) register(ctx context.Context, entries []*entry) error {
	k.events <- struct{}{}
	defer func() { <-k.events }()
	all := append(slices.Clone(*k.handlers.Load()), entries...)
	k.handlers.Store(&all)
	if !k.begun {
		k.begun = true
		return k.feed.listen(k.own) // not before: an event without a handler is dropped
	}
	if !k.feed.isRunning() {
		return nil // the events of all objects follow
	}
	objects, err := k.feed.list(ctx, client.UnsafeDisableDeepCopy)
	switch {
	case errors.Is(err, errNotKnown):
		return nil // the kind has just disappeared
	case err != nil:
		return err
	}
	now := time.Now()
	for _, obj := range objects {
		for _, e := range entries {
			for _, f := range e.filters {
				f.Create(event.CreateEvent{Object: obj, IsInInitialList: true})
			}
			k.due.add(client.ObjectKeyFromObject(obj), call{entry: e, at: now})
		}
		k.add(client.ObjectKeyFromObject(obj), true)
	}
	return nil
}

// unregister removes handlers, and reports whether none is left.
func (k *kind) unregister(entries []*entry) bool {
	rest := slices.DeleteFunc(slices.Clone(*k.handlers.Load()), func(e *entry) bool { return slices.Contains(entries, e) })
	k.handlers.Store(&rest)
	for _, e := range entries {
		k.due.drop(e)
	}
	return len(rest) == 0
}

// wake has one handler be called for an object at a time.
func (k *kind) wake(e *entry, name client.ObjectKey, after time.Duration) {
	if e.isStopped() {
		return
	}
	k.due.add(name, call{entry: e, at: time.Now().Add(after)})
	k.later(name, after)
}

// later puts an object into the queue at a time.
func (k *kind) later(name client.ObjectKey, after time.Duration) {
	if after <= 0 {
		k.add(name, false)
		return
	}
	k.mu.Lock()
	q := k.queue
	k.mu.Unlock()
	if q != nil {
		q.AddAfter(reconcile.Request{NamespacedName: name}, after)
	}
}

// kindEvents are the events of the objects of a kind.
type kindEvents struct{ k *kind }

// Create implements [predicate.Predicate].
func (v kindEvents) Create(ev event.CreateEvent) bool {
	defer v.filter(func(f predicate.Predicate) { f.Create(ev) })()
	verb, why := "created", journal.CauseKind("")
	if ev.IsInInitialList {
		verb, why = "", journal.CauseStart
	}
	v.mark(ev.Object, reasonChange, ev.IsInInitialList, why, verb)
	return true
}

// Update implements [predicate.Predicate].
func (v kindEvents) Update(ev event.UpdateEvent) bool {
	defer v.filter(func(f predicate.Predicate) { f.Update(ev) })()
	if ev.ObjectOld != nil && ev.ObjectOld.GetResourceVersion() == ev.ObjectNew.GetResourceVersion() {
		v.mark(ev.ObjectNew, reasonResync, true, "", "repeated")
		return true
	}
	v.mark(ev.ObjectNew, reasonChange, false, "", "updated")
	return true
}

// Delete implements [predicate.Predicate].
func (v kindEvents) Delete(ev event.DeleteEvent) bool {
	defer v.filter(func(f predicate.Predicate) { f.Delete(ev) })()
	v.mark(ev.Object, reasonGone, false, "", "deleted")
	return true
}

// Generic implements [predicate.Predicate].
func (v kindEvents) Generic(event.GenericEvent) bool { return true }

// filter passes an event to the filters of the handlers, before anything is due. It returns what
// ends the event.
func (v kindEvents) filter(pass func(f predicate.Predicate)) (end func()) {
	v.k.events <- struct{}{}
	for _, e := range *v.k.handlers.Load() {
		for _, f := range e.filters {
			pass(f)
		}
	}
	return func() { <-v.k.events }
}

// mark notes that handlers are due, if there are any for such an event, and what has caused it.
func (v kindEvents) mark(obj client.Object, why reason, low bool, cause journal.CauseKind, verb string) {
	wanted := slices.ContainsFunc(*v.k.handlers.Load(), func(e *entry) bool {
		switch why {
		case reasonResync:
			return e.resync
		case reasonGone:
			return e.gone != nil || e.engine != nil
		}
		return true
	})
	if !wanted {
		return
	}
	name := client.ObjectKeyFromObject(obj)
	if slices.ContainsFunc(*v.k.handlers.Load(), (*entry).needsObject) {
		v.k.causes.Own(obj, cause, verb)
	}
	v.k.due.mark(name, why)
	v.k.add(name, low)
}

// dueLimiter has the queue try an object again when the first of its handlers is due.
type dueLimiter struct{ k *kind }

func (l dueLimiter) When(request reconcile.Request) time.Duration {
	after, _ := l.k.due.next(request.NamespacedName, time.Now())
	return after
}
func (l dueLimiter) Forget(reconcile.Request)          {}
func (l dueLimiter) NumRequeues(reconcile.Request) int { return 0 }

// reconcile calls the handlers that are due for an object, one after the other, in the order of
// their registration.
func (k *kind) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name := request.NamespacedName
	p := &pass{kind: k, name: name, began: time.Now(), readable: k.feed.isRunning()}
	if !k.feed.isKnown() {
		return reconcile.Result{}, nil // until the feed runs again; addAll adds it then
	}
	// The due handlers are taken before the object is read: a change that comes in between is due
	// again, and one that was due has reached the cache.
	p.due = k.due.take(name, p.began)
	all := *k.handlers.Load() // after that: it has the handlers of all calls
	if k.registry.options.Shard != nil || slices.ContainsFunc(all, (*entry).needsObject) {
		obj, known, err := k.feed.get(ctx, name)
		if err != nil || !known {
			k.due.restore(name, p.due)
			k.add(name, true) // the feed may run again meanwhile
			return reconcile.Result{}, err
		}
		p.object = obj
	}
	p.seen = k.causes.Take(name)
	may, err := p.mayCall(ctx)
	if err != nil {
		k.due.restore(name, p.due)
		return reconcile.Result{}, err
	}
	for _, e := range all {
		if !may {
			break
		}
		if wants, err := p.wants(ctx, e); wants {
			p.call(ctx, e, err)
		}
	}
	p.finish(ctx)
	if err := p.err(); err != nil {
		return reconcile.Result{}, err // the limiter knows when
	}
	after, due := k.due.next(name, time.Now())
	if !due {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(after, time.Nanosecond)}, nil
}

// A pass is one round of handlers for one object.
type pass struct {
	kind   *kind
	name   client.ObjectKey
	object client.Object // that of the cache; nil if there is none, or no handler needs it
	due    due
	seen   []cause.Seen
	began  time.Time

	journal *journal.Run // nil without an observer, and until a handler without an engine is called
	errs    []error
	worst   failure.Classification
	waits   []journal.Wait
	paused  bool
	moved   bool // the object is not gone, but another shard's
	// readable says that the kind is there: an engine would read the object.
	readable bool
}

// wants reports whether a handler is due. The error is what keeps it from being called.
func (p *pass) wants(ctx context.Context, e *entry) (bool, error) {
	why := p.due.why
	mine := slices.ContainsFunc(p.due.calls, func(c call) bool { return c.entry == e })
	switch {
	case p.object == nil && (e.gone == nil || p.moved) && e.engine == nil:
		e.tries.Forget(p.name)
		return false, nil
	case e.engine != nil && !p.readable, e.engine == nil && p.object != nil && e.change == nil:
		return false, nil
	case !mine && why&(reasonChange|reasonGone) == 0 && (why&reasonResync == 0 || !e.resync):
		return false, nil
	case p.object == nil || e.engine != nil && p.isToCleanUp(e):
		return true, nil
	}
	selected, err := p.isSelected(ctx, e)
	if !selected && err == nil {
		e.tries.Forget(p.name)
	}
	return selected || err != nil, err
}

// isToCleanUp reports whether the object is to be cleaned up by the engine of a handler, which does
// that for all that have its finalizer.
func (p *pass) isToCleanUp(e *entry) bool {
	return !p.object.GetDeletionTimestamp().IsZero() && slices.Contains(p.object.GetFinalizers(), e.engine.Finalizer())
}

// call calls a handler, unless it has failed already, and notes when it is due again.
func (p *pass) call(ctx context.Context, e *entry, failed error) {
	if !e.begin() {
		return
	}
	defer e.end()
	if e.engine != nil && failed == nil {
		p.callEngine(ctx, e)
		return
	}
	if p.isPaused() {
		p.start(ctx)
		p.paused = true
		return
	}
	began := time.Now()
	ctx = p.begin(ctx, e)
	o := journalOutcome{err: failed}
	if failed == nil {
		o = p.run(ctx, e)
	}
	p.note(ctx, e, o, began)
}

// isPaused reports whether the object is to be left alone. An engine decides for itself.
func (p *pass) isPaused() bool {
	if p.object == nil {
		return false
	}
	value, ok := p.object.GetAnnotations()[condition.PauseAnnotation]
	return ok && !strings.EqualFold(value, "false")
}

// begin returns the context of a call, whose reads and writes are recorded.
func (p *pass) begin(ctx context.Context, e *entry) context.Context {
	p.start(ctx)
	call := &callContext{Context: log.IntoContext(ctx, log.FromContext(ctx).WithValues(e.logged...)), entry: e}
	if p.journal == nil {
		return call
	}
	call.record = &track.Record{Journal: p.journal, Owner: p.kind.registry.options.Name}
	ctx = journal.ContextWithRun(journal.ContextWithStep(call, e.name), p.journal)
	p.journal.Note(ctx, journal.StepBegan{Step: e.name, Phase: journal.PhaseDo})
	return ctx
}

// start records that handlers are called.
func (p *pass) start(ctx context.Context) {
	k := p.kind
	if k.observer == nil || p.journal != nil {
		return
	}
	p.journal = journal.NewRun(k.observer, uuid.NewUUID(), k.name, journal.ObjectOf(k.key.gvk.GroupKind(), p.name))
	started := journal.Started{Causes: p.causes()}
	if p.object != nil {
		p.journal.UID = p.object.GetUID()
		started.Generation, started.ResourceVersion = p.object.GetGeneration(), p.object.GetResourceVersion()
		started.Deleting = !p.object.GetDeletionTimestamp().IsZero()
	}
	p.journal.Note(ctx, started)
}

// causes returns why the handlers are called.
func (p *pass) causes() []journal.Cause {
	var timer cause.Timer
	if len(p.due.calls) > 0 {
		failed := slices.ContainsFunc(p.due.calls, func(c call) bool { return c.failed })
		timer.Set(p.began.Add(-time.Nanosecond), time.Nanosecond, failed)
	}
	return timer.Causes(p.seen, "", p.began)
}

// err returns what has failed, of all handlers. None is terminal: controller-runtime would drop the
// object, which each handler is tried again for.
func (p *pass) err() error { return outcome.HideTerminal(outcome.JoinErrors(p.errs)) }

// finish records how the pass ended.
func (p *pass) finish(ctx context.Context) {
	if p.journal == nil {
		return
	}
	how := journal.ResultDone
	o := journal.Outcome{Waits: p.waits}
	switch {
	case len(p.errs) > 0:
		how, o.Err, o.Class, o.Remedy = journal.ResultFailed, p.err(), string(p.worst.Class), p.worst.Remedy
	case len(p.waits) > 0:
		how = journal.ResultWaiting
	case p.object == nil:
		how = journal.ResultGone
	case p.paused:
		how = journal.ResultPaused
		p.journal.Note(ctx, journal.Gated{Reason: "Paused", Message: "annotation " + condition.PauseAnnotation + " is set: no handler is called until it is removed"})
	}
	if after, due := p.kind.due.next(p.name, time.Now()); due {
		o.RequeueAfter = after
		why := "time"
		if len(p.errs) > 0 {
			why = "backoff"
		}
		p.journal.Note(ctx, journal.Requeued{After: after, Why: why})
	}
	p.journal.Note(ctx, journal.Finished{Result: how, Outcome: o, Duration: time.Since(p.began)})
}

var _ reconcile.Reconciler = (*kind)(nil)
