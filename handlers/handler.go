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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/wiring"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Handler is called for the objects of a kind. It is registered with [Registry.Register], beside
// others for the same kind: they share its cache and its queue, and nothing else. Each has its own
// copy of the object, its own error and its own backoff.
//
// T is a pointer to a type of the scheme, such as *corev1.Namespace. For kinds that are known only
// at run time it is *unstructured.Unstructured or *metav1.PartialObjectMetadata, and Kind says
// which one.
//
// All functions have this in common:
//
//   - They must be idempotent: they are called again after every error, crash and change.
//   - Their outcome is one of package ctrlkit: a time, a wait, an error. The handler is called
//     again when that time has come, or after the backoff of the error; others are not.
//   - They are not called at the same time for one object, but for several.
//   - A panic is an error, with its stack.
//   - Their reads and writes through [Registry.Client] are in the journal.
type Handler[T client.Object] struct {
	// Name names the handler, in a few words on one line. It is unique among the handlers of its
	// kind.
	Name string

	// Kind is the kind of objects for a T that can stand for any, and empty otherwise.
	Kind schema.GroupVersionKind

	// OnChange is called for an object that is new or has changed, also while it is being deleted,
	// unless there is an OnRemove. Obj is a copy for this call: to change the object, write it.
	OnChange func(ctx context.Context, obj T) error

	// OnGone is called for the name of an object that is gone, or was enqueued and does not exist.
	// It may be called for one that the handler has never seen, and twice for one deletion. What
	// happens while the process does not run is missed: what must not be missed needs OnRemove.
	OnGone func(ctx context.Context, name client.ObjectKey) error

	// OnRemove is called for an object that is being deleted, which stays until OnRemove has
	// returned without an error, a wait or a time. For that the handler puts Finalizer on each
	// object that it selects, and on no other one, before the first OnChange.
	//
	// A handler with OnRemove is a step of an engine of its own: see [Steps].
	OnRemove func(ctx context.Context, obj T) error

	// Finalizer is that of OnRemove. By default it is the API group of T and the name of the
	// handler, which for a kind of the core group does not exist. It stays on the objects when the
	// handler is stopped; see [Registration.Retire].
	Finalizer string

	// Selects returns for which objects the handler is. It depends on obj only, which it must not
	// change. By default it is for all.
	Selects func(obj T) bool

	// Related are watches of other objects for whose changes the handler is called, too: see package
	// step. It is called once for a change, whatever time it had asked for before: also after a
	// failure it does not wait for the rest of its backoff.
	//
	// They are watched as long as the handler is registered, and a kind that does not exist yet is
	// waited for.
	Related []step.Watch

	// Resync has OnChange called for unchanged objects, too, when the informer repeats them: see
	// [KindOptions.Resync].
	Resync bool
}

// An Entry is registered with a [Registry]: a [Handler], or the result of [Steps], [Status] or
// [Generate].
type Entry interface {
	// prepare returns the handler for a registry. The error names all mistakes in it.
	prepare(r *Registry) (*entry, error)
}

var _ Entry = Handler[client.Object]{}

// An entry is a registered handler, whatever its type is.
type entry struct {
	name    string
	logged  []any // what its log entries have
	kind    kindKey
	object  client.Object // an empty one of the kind
	change  func(ctx context.Context, obj client.Object) error
	gone    func(ctx context.Context, name client.ObjectKey) error
	selects func(obj client.Object) bool // nil for all
	related []step.Watch                 // of a handler without an engine
	resync  bool
	// tries are the failures of the handler, by object. An engine counts its own.
	tries      *failure.Limiter[client.ObjectKey]
	engine     engine // nil for a handler without one
	engineName string
	complete   bool           // the engine computes Ready and its kin
	wired      []wiring.Watch // of the engine
	// filters see the events of the kind before the handler is due.
	filters []predicate.Predicate

	mu      sync.Mutex // for all below
	running int
	stopped bool
	idle    chan struct{} // closed when it is stopped and does not run
}

// begin notes that the handler is called, unless it is stopped.
func (e *entry) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return false
	}
	e.running++
	return true
}

func (e *entry) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running--; e.running == 0 && e.stopped {
		close(e.idle)
	}
}

// stop has the handler not be called any more. It does not wait for calls that are running.
func (e *entry) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.stopped = true
		if e.running == 0 {
			close(e.idle)
		}
	}
}

func (e *entry) isStopped() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}

// needsObject reports whether the object is needed to call the handler, and the causes of the call.
// An engine knows both itself.
func (e *entry) needsObject() bool { return e.engine == nil || e.selects != nil || e.gone != nil }

// newEntry returns the entry of a handler, and what is wrong with its name and kind.
func newEntry[T client.Object](r *Registry, name string, kind schema.GroupVersionKind) (*entry, error) {
	var mistakes []error
	if strings.TrimSpace(name) == "" || strings.ContainsAny(name, "\n\r") {
		mistakes = append(mistakes, fmt.Errorf("name %q: a name is a few words on one line", name))
	}
	obj, err := newObject[T](kind)
	if err != nil {
		return nil, errors.Join(append(mistakes, err)...)
	}
	e := &entry{name: name, logged: []any{"handler", name}, object: obj, tries: failure.NewLimiter[client.ObjectKey](), idle: make(chan struct{})}
	if e.kind, err = keyOf(obj, r.scheme); err != nil {
		mistakes = append(mistakes, fmt.Errorf("%w: register it with the scheme of the manager", err))
	}
	return e, errors.Join(mistakes...)
}

// newObject returns an empty object of type T.
func newObject[T client.Object](kind schema.GroupVersionKind) (client.Object, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("type %v: a handler is for a pointer to a struct, such as *corev1.Namespace", t)
	}
	obj := reflect.New(t.Elem()).Interface().(client.Object) //nolint:errcheck // it is a T
	switch any(obj).(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if kind.Version == "" || kind.Kind == "" {
			return nil, fmt.Errorf("type %v stands for any kind: set Kind to the one that is meant, with its version", t)
		}
		obj.GetObjectKind().SetGroupVersionKind(kind)
	default:
		if !kind.Empty() {
			return nil, fmt.Errorf("kind %s: it is known from type %v: leave Kind empty", kind, t)
		}
	}
	return obj, nil
}

func (h Handler[T]) prepare(r *Registry) (*entry, error) {
	if h.OnRemove != nil {
		return h.prepareEngine(r)
	}
	e, err := newEntry[T](r, h.Name, h.Kind)
	if err != nil {
		return nil, named(h.Name, err)
	}
	var mistakes []error
	if h.OnChange == nil && h.OnGone == nil {
		mistakes = append(mistakes, errors.New("it has neither OnChange nor OnGone nor OnRemove"))
	}
	if h.Finalizer != "" {
		mistakes = append(mistakes, fmt.Errorf("finalizer %q: without OnRemove there is nothing to wait for", h.Finalizer))
	}
	e.gone, e.related, e.resync, e.selects = h.OnGone, slices.Clone(h.Related), h.Resync, untyped(h.Selects)
	if h.OnChange != nil {
		e.change = func(ctx context.Context, obj client.Object) error {
			return h.OnChange(ctx, obj.(T)) //nolint:errcheck // the cache of the kind has no others
		}
	}
	mistakes = append(mistakes, checkRelated[T](r, e.related))
	return e, named(h.Name, errors.Join(mistakes...))
}

// prepareEngine returns the entry of a handler with OnRemove.
func (h Handler[T]) prepareEngine(r *Registry) (*entry, error) {
	return Steps(h.Name, StepsOptions[T]{Finalizer: h.Finalizer, Kind: h.Kind, Selects: h.Selects, Related: h.Related, OnGone: h.OnGone, Resync: h.Resync},
		h.step()).prepare(r)
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("handler %q: %w", name, err)
}

func untyped[T client.Object](selects func(obj T) bool) func(client.Object) bool {
	if selects == nil {
		return nil
	}
	return func(obj client.Object) bool {
		typed, ok := obj.(T)
		return ok && selects(typed)
	}
}

// step is that of a handler with OnRemove.
func (h Handler[T]) step() step.Step[T] {
	cleans := func(req *step.Request[T]) bool { return h.Selects == nil || h.Selects(req.Snapshot()) }
	return step.Step[T]{
		Name: h.Name,
		Do: func(ctx context.Context, req *step.Request[T]) error {
			if h.OnChange == nil || !cleans(req) {
				return nil
			}
			return h.OnChange(ctx, req.Object.DeepCopyObject().(T)) //nolint:errcheck // a copy has the type
		},
		Cleanup: func(ctx context.Context, req *step.Request[T]) error {
			return h.OnRemove(ctx, req.Object.DeepCopyObject().(T)) //nolint:errcheck // a copy has the type
		},
		Cleans: cleans,
	}
}
