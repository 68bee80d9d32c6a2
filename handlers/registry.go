// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Options are options of a [Registry]. Name is required, all else may be zero.
type Options struct {
	// Name is a DNS label: the field owner of what handlers apply, and the beginning of the names
	// of controllers, engines and finalizers.
	Name string

	// Observers receive the events of the journal: a controller for each kind, a step for each
	// handler.
	Observers []journal.Observer

	// Recorder records Kubernetes events, for handlers that have an engine.
	Recorder events.EventRecorder

	// Failures classifies the errors of handlers.
	Failures failure.Table

	// Shard is the part of a ring whose objects the handlers are called for; see
	// operator.NewShardManager. Every kind with handlers is one of the ring's resources, or
	// registering is an error: all replicas would call them for the same objects. An object that
	// moves to another shard is neither gone nor removed: OnGone and OnRemove are not called.
	Shard *shard.Shard

	// Default are the options of all kinds that are not in Kinds.
	Default KindOptions

	// Kinds are options by kind. A zero there is zero, and not the value of Default.
	Kinds map[schema.GroupKind]KindOptions
}

// KindOptions are options for the controller and the cache of one kind. All may be zero.
type KindOptions struct {
	// Workers is how many objects of the kind are processed at the same time, one by default.
	Workers int

	// Resync is how often unchanged objects are repeated to handlers that ask for it. By default
	// it is the SyncPeriod of the cache of the manager, ten hours if that is zero. The period is
	// that of this registry: other users of the cache keep theirs.
	Resync time.Duration

	// NewQueue makes the queue, for limits that all objects of a kind share: see
	// controller.Options. Backoff is not its concern, because it belongs to each handler.
	NewQueue func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

	// Namespaces, Labels and Fields limit which objects of the kind are cached, for all readers of
	// the manager's cache, as long as the kind has handlers. For limits that hold always use
	// cache.Options.ByObject.
	Namespaces []string
	Labels     labels.Selector
	Fields     fields.Selector
}

func (o *KindOptions) isLimited() bool {
	return len(o.Namespaces) > 0 || o.Labels != nil || o.Fields != nil
}

// A Registry has the handlers of a process, for any number of kinds. It is made by [New] for a
// manager, which starts and stops it, and safe for concurrent use.
type Registry struct {
	options  Options
	manager  manager.Manager
	scheme   *runtime.Scheme
	mapper   apimeta.RESTMapper
	base     client.Client // that of the manager
	live     client.Reader
	cache    *countingCache
	log      logr.Logger
	observer journal.Observer

	discovery func() (discovery.DiscoveryInterface, error)
	dynamic   func() (dynamic.Interface, error)

	mu      sync.Mutex               // for all below; it is never held during a request
	ctx     context.Context          // of Start; nil before
	ended   bool                     // Start has returned, or is about to
	kinds   map[kindKey]*kind        // with a handler
	feeds   map[kindKey]*feed        // with a listener
	watches map[*entry][]watch       // of each handler
	ending  map[<-chan struct{}]bool // what Start waits for
}

// New returns the registry of a manager, and adds it to the manager, which has to use [NewCache].
// A manager may have several registries, of different names. They share the caches, and each has its
// own queues.
func New(mgr manager.Manager, options Options) (*Registry, error) {
	r := &Registry{
		options: options, manager: mgr, scheme: mgr.GetScheme(), mapper: mgr.GetRESTMapper(), base: mgr.GetClient(), live: mgr.GetAPIReader(),
		log: mgr.GetLogger().WithName(options.Name), observer: journal.Observers(options.Observers...),
		kinds: make(map[kindKey]*kind), feeds: make(map[kindKey]*feed), watches: make(map[*entry][]watch), ending: make(map[<-chan struct{}]bool),
	}
	var mistakes []error
	if len(validation.IsDNS1123Label(options.Name)) > 0 {
		mistakes = append(mistakes, fmt.Errorf("name %q: it is a DNS label, for example \"project\"", options.Name))
	}
	var ok bool
	if r.cache, ok = mgr.GetCache().(*countingCache); !ok {
		mistakes = append(mistakes, errors.New("the cache of the manager can't release kinds: set NewCache in its options to handlers.NewCache"))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, fmt.Errorf("handlers: %w", err)
	}
	r.discovery = sync.OnceValues(func() (discovery.DiscoveryInterface, error) {
		return discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	})
	r.dynamic = sync.OnceValues(func() (dynamic.Interface, error) {
		return dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	})
	if err := r.cache.report(options.Name, r.watchFailed); err != nil {
		return nil, fmt.Errorf("handlers: %w", err)
	}
	return r, mgr.Add(r)
}

// Client returns the client of the manager for handlers: it reads from the caches of the kinds, and
// writes. Reads and writes with the context of a call of a handler are in the journal.
func (r *Registry) Client() client.Client { return recordingClient{r.base} }

// APIReader returns a reader of the API server, beside all caches.
func (r *Registry) APIReader() client.Reader { return r.live }

// Dynamic returns a client for resources that are known by their names only, with all verbs:
//
//	client, err := registry.Dynamic()
//	...
//	list, err := client.Resource(gvr).Namespace("default").List(ctx, metav1.ListOptions{})
//
// It neither reads from caches nor writes to the journal.
func (r *Registry) Dynamic() (dynamic.Interface, error) { return r.dynamic() }

// Register registers handlers: all of them or, if the error is not nil, none. Each is called for
// all objects that exist, and for each change after that.
//
//   - It may be called before the manager starts and after that, also by a handler.
//   - A kind that the API server does not have is waited for, and so is one that disappears.
//   - The error names all mistakes.
func (r *Registry) Register(entries ...Entry) (*Registration, error) {
	prepared := make([]*entry, 0, len(entries))
	var mistakes []error
	for i, x := range entries {
		if x == nil || reflect.ValueOf(x).Kind() == reflect.Pointer && reflect.ValueOf(x).IsNil() {
			mistakes = append(mistakes, fmt.Errorf("handler %d is nil", i+1))
			continue
		}
		e, err := x.prepare(r)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		prepared = append(prepared, e)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, fmt.Errorf("registering handlers: %w", err)
	}
	if err := r.add(prepared); err != nil {
		return nil, fmt.Errorf("registering handlers: %w", err)
	}
	return &Registration{registry: r, entries: prepared}, nil
}

// add adds prepared handlers, all or none.
func (r *Registry) add(entries []*entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(entries); err != nil {
		return err
	}
	if r.ended {
		return errors.New("the manager has stopped")
	}
	if err := r.claim(entries); err != nil {
		return err
	}
	byKind := make(map[*kind][]*entry)
	var order []*kind
	for _, e := range entries {
		k := r.kindOf(e)
		if byKind[k] == nil {
			order = append(order, k)
		}
		byKind[k] = append(byKind[k], e)
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, r.relateLocked(r.kinds[e.kind], e))
	}
	for _, k := range order {
		errs = append(errs, k.register(r.context(), byKind[k]))
		r.startFeedLocked(k.feed)
		if r.ctx != nil {
			errs = append(errs, r.startLocked(k))
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.removeLocked(entries)
		return err
	}
	return nil
}

// context returns that of Start, or one for what needs none before.
func (r *Registry) context() context.Context {
	if r.ctx != nil {
		return r.ctx
	}
	return context.Background()
}

// kindOf returns the controller of the kind of a handler.
func (r *Registry) kindOf(e *entry) *kind {
	k := r.kinds[e.kind]
	if k == nil {
		f := r.feedOf(e.kind, e.object)
		k = newKind(r, e.kind, f)
		r.kinds[e.kind] = k
	}
	return k
}

// feedOf returns the feed of a kind. A new one is to be started by startFeedLocked when it has a
// listener: a feed is running as soon as all its listeners have the objects that exist.
func (r *Registry) feedOf(key kindKey, object client.Object) *feed {
	f := r.feeds[key]
	if f == nil {
		options, ok := r.options.Kinds[key.gvk.GroupKind()]
		if !ok {
			options = r.options.Default
		}
		if options.isLimited() {
			options.Labels = r.selects(key, options.Labels)
		}
		f = &feed{
			key: key, object: object, options: options, cache: r.cache, log: r.log, done: make(chan struct{}), state: StateWaiting, message: "the manager has not started",
			served: func(live bool) error { return r.served(key.gvk, live) },
			report: func(cause string) { r.noteKind(key, cause) },
		}
		r.feeds[key] = f
	}
	return f
}

// startFeedLocked starts a feed unless it is started, or nothing is.
func (r *Registry) startFeedLocked(f *feed) {
	if r.ctx != nil && !r.ending[f.done] {
		f.start(r.ctx)
		r.ending[f.done] = true
	}
}

// relateLocked adds the watches of a handler.
func (r *Registry) relateLocked(k *kind, e *entry) error {
	filters := slices.Clone(e.filters) // of the engine; what relate adds is for the events of the own kind
	all, err := k.relate(e)
	errs := []error{err}
	for _, w := range all {
		key, err := keyOf(w.Object, r.scheme)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f := r.feedOf(key, w.Object)
		l := &listener{events: watchEvents{&wakingQueue{kind: k, entry: e}, f, filters, w}, index: w.RegisterIndexes}
		r.watches[e] = append(r.watches[e], watch{l, f})
		errs = append(errs, f.listen(l))
		r.startFeedLocked(f)
	}
	return errors.Join(errs...)
}

// startLocked starts the controller of a kind, if it is new.
func (r *Registry) startLocked(k *kind) error {
	if k.cancel != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(r.ctx)
	k.cancel = cancel
	if err := k.start(ctx); err != nil {
		return err
	}
	r.ending[k.done] = true
	return nil
}

// removeLocked removes handlers, and what only they have needed. The channel that it returns is
// closed when none of them is running any more, and all that has ended.
func (r *Registry) removeLocked(entries []*entry) (ended <-chan struct{}) {
	var ends []func() // when no handler is running: it may need its cache and its context
	for _, e := range entries {
		e.stop()
		for _, w := range r.watches[e] {
			ends = append(ends, r.ignoreLocked(w.feed, w.listener))
		}
		delete(r.watches, e)
	}
	for key, k := range r.kinds {
		if !k.unregister(entries) {
			continue
		}
		delete(r.kinds, key)
		ends = append(ends, r.stopLocked(k), r.ignoreLocked(k.feed, k.own))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, e := range entries {
			<-e.idle
		}
		for _, end := range ends {
			end()
		}
	}()
	return done
}

// stopLocked returns what ends the controller of a kind and waits for that.
func (r *Registry) stopLocked(k *kind) func() {
	return func() {
		if k.cancel == nil {
			return
		}
		k.cancel()
		<-k.done
		r.forget(k.done)
	}
}

// ignoreLocked removes a listener, and returns what ends its feed if it was the last one.
func (r *Registry) ignoreLocked(f *feed, l *listener) func() {
	if !f.ignore(l) || r.feeds[f.key] != f {
		return func() {}
	}
	delete(r.feeds, f.key)
	return func() {
		f.stop()
		<-f.done
		r.forget(f.done)
	}
}

// forget notes that Start need not wait for something that has ended.
func (r *Registry) forget(done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		delete(r.ending, done)
	}
}

// Start starts what is registered, and waits until ctx is done and everything has ended. The
// manager calls it.
func (r *Registry) Start(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	var errs []error
	for _, f := range r.feeds {
		f.start(ctx)
		r.ending[f.done] = true
	}
	for _, k := range r.kinds {
		errs = append(errs, r.startLocked(k))
	}
	r.mu.Unlock()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	<-ctx.Done()
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	for done := range r.ending { // nothing is added any more
		<-done
	}
	return nil
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable]: handlers are called by the leader.
func (r *Registry) NeedLeaderElection() bool { return true }

// controllerName returns the name of the controller of a kind.
func (r *Registry) controllerName(key kindKey) string {
	name := r.options.Name + "-" + strings.ToLower(key.gvk.Kind)
	if key.gvk.Group != "" {
		name += "." + key.gvk.Group
	}
	if key.form != formTyped {
		name += "-" + string(key.form)
	}
	return name
}

var _ manager.LeaderElectionRunnable = (*Registry)(nil)
