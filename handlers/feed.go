// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A listener receives the events of a kind. Its predicate functions are called for each event, one
// after the other; what they return does not matter.
type listener struct {
	events predicate.Predicate
	// synced is called when the events of all objects that exist have been received, and again
	// after the kind was missing. It may be nil.
	synced func()
	// index has the cache keep the indexes that it needs. It may be nil.
	index func(client.FieldIndexer) error

	registration toolscache.ResourceEventHandlerRegistration // nil while there is no informer
	ignored      chan struct{}                               // closed when it is removed
}

// A feed has the events and the objects of one kind, as long as a listener needs them. It waits
// for a kind that the API server does not have, and waits again when the kind disappears.
type feed struct {
	key     kindKey
	object  client.Object // an empty one of the kind
	options KindOptions
	cache   *countingCache
	// served returns an error if the API server does not have the kind. Live says that it must be
	// asked now, because the kind had been there before.
	served func(live bool) error
	log    logr.Logger
	// report is called when the kind is found to be missing or unreadable, with the cause, and with
	// an empty one when that has ended.
	report func(cause string)

	done chan struct{} // closed when it has ended

	// reading is held by reads of the cache, and by the end of an informer: a read without an
	// informer would start another one.
	reading sync.RWMutex

	mu        sync.Mutex // for all below
	informer  cache.Informer
	listeners []*listener
	cancel    context.CancelFunc // nil until it is started
	lost      chan struct{}      // closed when the kind has disappeared; nil without an informer
	wasLost   bool
	reported  bool // that it is missing or unreadable
	late      bool // the kind was not there when it was first needed
	state     State
	message   string
}

// A State says whether the objects of a kind are known.
type State string

// The states of kinds.
const (
	// StateWaiting is the state of a kind that the API server does not have.
	StateWaiting State = "Waiting"
	// StateSyncing is the state until all objects that exist are known.
	StateSyncing State = "Syncing"
	// StateRunning is the state of a kind whose changes reach its handlers.
	StateRunning State = "Running"
)

// lookForKind is how often the API server is asked for a kind that it does not have.
const lookForKind = 5 * time.Second

// start starts a feed, which ends with ctx or with stop.
func (f *feed) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	f.cancel = cancel
	f.mu.Unlock()
	go func() {
		defer close(f.done)
		for ctx.Err() == nil {
			f.serve(ctx)
		}
	}()
}

// stop ends a feed that was started, and does not wait for it.
func (f *feed) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel == nil {
		close(f.done)
		return
	}
	f.cancel()
}

// serve waits for the kind, and feeds its listeners until it disappears.
func (f *feed) serve(ctx context.Context) {
	if !f.awaitKind(ctx) {
		return
	}
	f.setState(StateSyncing, listing)
	if err := f.run(ctx); err != nil && ctx.Err() == nil {
		f.setState(StateWaiting, err.Error())
		f.log.Error(err, "Could not watch a kind", "kind", f.key.String(), "retry", lookForKind)
		_ = wait.PollUntilContextTimeout(ctx, lookForKind, lookForKind, false, func(context.Context) (bool, error) { return true, nil })
	}
}

// awaitKind waits until the API server has the kind; it returns false if the feed is to end.
func (f *feed) awaitKind(ctx context.Context) bool {
	err := wait.PollUntilContextCancel(ctx, lookForKind, true, func(ctx context.Context) (bool, error) {
		err := f.served(f.hasBeenLost())
		if err != nil && ctx.Err() == nil {
			f.missing(err)
		}
		return err == nil, nil
	})
	return err == nil
}

// missing notes why the kind can't be watched. It is logged once.
func (f *feed) missing(err error) {
	message := fmt.Sprintf("the API server can't be asked for it: %v", err)
	if apimeta.IsNoMatchError(err) || errors.Is(err, errNotServed) {
		message = "the API server does not have the kind: install its CustomResourceDefinition"
	}
	f.mu.Lock()
	f.late = true
	f.mu.Unlock()
	if f.setState(StateWaiting, message) {
		f.log.Info("Waiting for a kind", "kind", f.key.String(), "cause", message)
	}
}

var (
	errNotServed = errors.New("the kind is not served")
	errNotKnown  = errors.New("its objects are not known yet")
)

// run feeds the listeners until ctx is done or the kind has disappeared.
func (f *feed) run(ctx context.Context) error {
	if f.options.isLimited() {
		stop, err := f.cache.limit(ctx, f.key, f.object, &f.options)
		if err != nil {
			return err
		}
		defer stop()
	}
	informer, err := f.cache.acquire(ctx, f.key, f.object)
	if err != nil {
		return err
	}
	lost, err := f.attach(informer)
	disappeared := false
	if err == nil {
		f.awaitSync(ctx, lost)
		if f.awaitEnd(ctx, lost); ctx.Err() == nil {
			disappeared = true
			drain(ctx)
		}
	}
	return errors.Join(err, f.detach(disappeared))
}

// drain waits until the events that the informer had before its kind disappeared have been passed
// on: to remove an event handler drops what is pending for it, and nothing says when that is done.
func drain(ctx context.Context) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}

// attach adds the listeners to an informer.
func (f *feed) attach(informer cache.Informer) (lost chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.informer, f.lost = informer, make(chan struct{})
	for _, l := range f.listeners {
		if err := f.attachOne(l); err != nil {
			return f.lost, err
		}
	}
	return f.lost, nil
}

func (f *feed) attachOne(l *listener) error {
	if l.index != nil {
		if err := l.index(f.cache); err != nil {
			return err
		}
	}
	options := toolscache.HandlerOptions{}
	if f.options.Resync > 0 {
		options.ResyncPeriod = new(time.Duration(0)) // the feed repeats them itself
	}
	registration, err := f.informer.AddEventHandlerWithOptions(informing{l.events}, options)
	l.registration = registration
	return err
}

// awaitSync waits until all objects that exist were reported, to all listeners: listeners come and
// go meanwhile.
func (f *feed) awaitSync(ctx context.Context, lost <-chan struct{}) {
	for {
		l, all, report := f.unsynced()
		if l == nil {
			report()
			f.log.V(1).Info("Watching a kind", "kind", f.key.String())
			for _, l := range all {
				if l.synced != nil {
					l.synced()
				}
			}
			return
		}
		select {
		case <-l.registration.HasSyncedChecker().Done():
		case <-l.ignored: // its events end before it has synced
		case <-lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// unsynced returns a copy of a listener that has not received all objects yet. If there is none, the
// feed is running from now on, and unsynced returns all listeners that have waited for that: those
// that are added later see that it runs.
func (f *feed) unsynced() (l *listener, all []*listener, report func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.listeners {
		if l.registration != nil && !l.registration.HasSynced() {
			return new(*l), nil, nil
		}
	}
	_, report = f.noteState(StateRunning, "")
	return nil, slices.Clone(f.listeners), report
}

// detach takes the listeners off the informer, and gives it back. If the kind has disappeared, its
// objects have, too.
func (f *feed) detach(disappeared bool) error {
	if disappeared {
		f.setState(StateWaiting, "the kind has disappeared")
		f.log.Info("A kind has disappeared", "kind", f.key.String())
		f.reportGone()
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, l := range f.listeners {
		if l.registration != nil {
			errs = append(errs, f.informer.RemoveEventHandler(l.registration))
			l.registration = nil
		}
	}
	f.informer, f.lost = nil, nil
	return errors.Join(append(errs, f.cache.release(context.Background(), f.key, f.object))...)
}

// reportGone reports the deletion of all objects that the cache still has.
func (f *feed) reportGone() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	objects, err := f.list(ctx, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // it was never synced
	}
	f.mu.Lock()
	all := slices.Clone(f.listeners)
	f.mu.Unlock()
	for _, obj := range objects {
		for _, l := range all {
			l.events.Delete(event.DeleteEvent{Object: obj, DeleteStateUnknown: true})
		}
	}
}

// listen adds a listener. The events of all objects that exist follow, also if the feed is running
// already.
func (f *feed) listen(l *listener) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.ignored = make(chan struct{})
	f.listeners = append(f.listeners, l)
	if f.informer == nil {
		return nil
	}
	if err := f.attachOne(l); err != nil {
		return err
	}
	if f.state == StateRunning && l.synced != nil {
		checker := l.registration.HasSyncedChecker()
		lost := f.lost
		go func() {
			select {
			case <-checker.Done():
				l.synced()
			case <-l.ignored:
			case <-lost:
			case <-f.done:
			}
		}()
	}
	return nil
}

// ignore removes a listener, and reports whether it was the last one.
func (f *feed) ignore(l *listener) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.listeners, l); i >= 0 {
		f.listeners = slices.Delete(f.listeners, i, i+1)
		close(l.ignored)
	}
	if l.registration != nil && f.informer != nil {
		if err := f.informer.RemoveEventHandler(l.registration); err != nil {
			f.log.Error(err, "Could not remove an event handler", "kind", f.key.String())
		}
		l.registration = nil
	}
	return len(f.listeners) == 0
}

// suspect is called when a watch has failed. It reports whether the kind has disappeared.
func (f *feed) suspect() bool {
	f.mu.Lock()
	lost := f.lost
	f.mu.Unlock()
	if lost == nil || !errors.Is(f.served(true), errNotServed) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != lost {
		return false
	}
	select {
	case <-lost:
	default:
		close(lost)
		f.wasLost = true
	}
	return true
}

// get reads an object from the cache. It is that of the cache, not a copy. It returns nil if there
// is none, and ok is false if that is not known.
func (f *feed) get(ctx context.Context, name client.ObjectKey) (obj client.Object, ok bool, err error) {
	f.reading.RLock()
	defer f.reading.RUnlock()
	if !f.isRunning() {
		return nil, f.isKnown(), nil
	}
	obj = newOf(f.object)
	if err := f.cache.Get(ctx, name, obj, client.UnsafeDisableDeepCopy); err != nil {
		return nil, true, client.IgnoreNotFound(err)
	}
	return obj, true, nil
}

// list reads all objects from the cache. The error is errNotKnown if their events follow.
func (f *feed) list(ctx context.Context, options ...client.ListOption) ([]client.Object, error) {
	f.reading.RLock()
	defer f.reading.RUnlock()
	f.mu.Lock()
	known := f.informer != nil && f.informer.HasSynced()
	f.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("%s: %w", f.key, errNotKnown)
	}
	list, err := newListOf(f.object, f.cache.scheme)
	if err != nil {
		return nil, err
	}
	if err := f.cache.List(ctx, list, options...); err != nil {
		return nil, err
	}
	var objects []client.Object
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object)) //nolint:errcheck // items of such a list are objects
		return nil
	})
	return objects, err
}

func (f *feed) isLate() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.late || f.wasLost
}

func (f *feed) hasBeenLost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wasLost
}

func (f *feed) isRunning() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state == StateRunning && f.informer != nil
}

// isKnown reports whether it is known which objects exist: none, if the kind has disappeared.
func (f *feed) isKnown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state == StateRunning || f.state == StateWaiting && f.wasLost
}

// setState notes the state, and reports whether it is a new one.
func (f *feed) setState(s State, message string) bool {
	f.mu.Lock()
	news, report := f.noteState(s, message)
	f.mu.Unlock()
	report()
	return news
}

// noteState notes the state, and returns whether it is a new one, and what reports it: to be called
// when the lock is not held any more.
func (f *feed) noteState(s State, message string) (news bool, report func()) {
	news = f.state != s || f.message != message
	f.state, f.message = s, message
	cause, ended := "", s == StateRunning && f.reported
	if s != StateRunning && message != listing {
		cause = message
	}
	if cause != "" || ended {
		f.reported = cause != ""
	}
	if !news || cause == "" && !ended {
		return news, func() {}
	}
	return news, func() { f.report(cause) }
}

// listing is the message of a kind whose objects are being listed, which is nothing to report.
const listing = "the objects that exist are being listed"

// noteError notes why the first list fails.
func (f *feed) noteError(err error) {
	f.mu.Lock()
	syncing := f.state == StateSyncing
	f.mu.Unlock()
	if syncing {
		f.setState(StateSyncing, err.Error())
	}
}

// status returns the state and its message.
func (f *feed) status() (State, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.message
}

// description is how an informer of the kind is called in errors of its watches.
func (f *feed) description() string {
	if f.key.form == formUnstructured {
		return f.key.gvk.String()
	}
	return reflect.TypeOf(f.object).String()
}
