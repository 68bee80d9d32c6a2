// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// An Entry is an event with when and where it happened.
type Entry struct {
	Time time.Time
	// Run is the reconcile that it belongs to. It is nil for a [Triggered], which comes before one.
	Run *Run
	// Controller and Object say what it is about.
	Controller string
	Object     Object
	Event      Event
}

// String describes the entry without its time.
func (e Entry) String() string { return e.Object.String() + ": " + e.Event.String() }

// An Observer receives the events of an operator.
type Observer interface {
	// Observe is called for every event as it happens.
	//
	//   - It is called on the goroutine on which the event happens, so concurrently.
	//   - It must not block.
	//   - It must not change what the entry points to.
	//   - If it panics, that is logged the first time. Neither the reconcile nor the other observers
	//     see it.
	//   - The context is that of the reconcile or, for a [Triggered], of the watch.
	Observe(ctx context.Context, entry Entry)
}

// Observers returns an observer that passes every entry to all observers, in their order. Nil ones
// are left out; for none it returns nil.
func Observers(observers ...Observer) Observer {
	var all several
	for _, o := range observers {
		switch o := o.(type) {
		case nil:
		case several:
			all = append(all, o...)
		case *guarded:
			all = append(all, o)
		default:
			all = append(all, &guarded{observer: o})
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	default:
		return all
	}
}

type several []Observer

func (s several) Observe(ctx context.Context, entry Entry) {
	for _, o := range s {
		o.Observe(ctx, entry)
	}
}

// A guarded observer may panic.
type guarded struct {
	observer Observer
	panicked sync.Once // for the log: it may panic at each event
}

func (g *guarded) Observe(ctx context.Context, entry Entry) {
	defer func() {
		if value := recover(); value != nil {
			g.panicked.Do(func() {
				log.FromContext(ctx).Error(fmt.Errorf("panic: %v", value), "Observed a panic in an observer of the journal",
					"observer", fmt.Sprintf("%T", g.observer), "entry", entry.String(), "stack", string(debug.Stack()))
			})
		}
	}()
	g.observer.Observe(ctx, entry)
}

// A Run is one reconcile of one object. A nil *Run has no observers: its methods do nothing.
type Run struct {
	// ID is different for each run of a process.
	ID         types.UID
	Controller string
	Object     Object
	// UID is that of the object. It is empty if the object could not be read, and while the cleanup
	// of an earlier object of the same name is pending.
	UID types.UID

	observer Observer
}

// NewRun returns a run that passes its events to observer, and nil if observer is nil.
func NewRun(observer Observer, id types.UID, controller string, object Object) *Run {
	switch observer.(type) {
	case nil:
		return nil
	case several, *guarded: // made once, not for each run
	default:
		observer = Observers(observer)
	}
	return &Run{ID: id, Controller: controller, Object: object, observer: observer}
}

// Note passes an event that happens now to the observer of the run. Check that r is not nil before
// you make an event: making it costs something, also without an observer.
func (r *Run) Note(ctx context.Context, event Event) {
	if r == nil {
		return
	}
	r.observer.Observe(ctx, Entry{Time: time.Now(), Run: r, Controller: r.Controller, Object: r.Object, Event: event})
}

type runKey struct{}

// ContextWithRun returns a context that carries r, or ctx itself if r is nil.
func ContextWithRun(ctx context.Context, r *Run) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, runKey{}, r)
}

// RunFromContext returns the run that ctx carries, nil if there are no observers:
//
//	if run := journal.RunFromContext(ctx); run != nil {
//		run.Note(ctx, journal.Called{What: "POST /buckets", Err: err})
//	}
func RunFromContext(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

type stepKey struct{}

// ContextWithStep returns a context for what a step calls.
func ContextWithStep(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, stepKey{}, name)
}

// StepFromContext returns the name of the step that runs with a context, for the events that it
// records; empty if none does.
func StepFromContext(ctx context.Context) string {
	name, _ := ctx.Value(stepKey{}).(string)
	return name
}
