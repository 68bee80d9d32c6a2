// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// An Entry is an event with when and where it happened.
type Entry struct {
	Time time.Time
	// Run is the reconcile that it belongs to. It is nil for a [Triggered], which comes before one.
	Run *Run
	// Controller and Object say whose it is.
	Controller string
	Object     Object
	Event      Event
}

// String describes the entry without its time.
func (e Entry) String() string { return e.Object.String() + ": " + e.Event.String() }

// An Observer is told what happens.
type Observer interface {
	// Observe is called for every event as it happens, on the goroutine on which it does, so several at once. It must not block, and it
	// must not change what the entry points to. The context is that of the reconcile or, for a [Triggered], of the watch.
	Observe(ctx context.Context, entry Entry)
}

// Observers returns an observer that tells all of them, in their order. Nil ones are left out; for none it returns nil.
func Observers(observers ...Observer) Observer {
	var all several
	for _, o := range observers {
		switch o := o.(type) {
		case nil:
		case several:
			all = append(all, o...)
		default:
			all = append(all, o)
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

// A Run is one reconcile of one object. A nil *Run is one to which nobody listens: its methods do nothing.
type Run struct {
	// ID is different for each run of a process.
	ID         types.UID
	Controller string
	Object     Object
	// UID is that of the object. It is empty when the object could not be read, and when an object of its name that went before had to be cleaned up after first.
	UID types.UID

	observer Observer
}

// NewRun returns a run that tells observer, and nil if that is nil.
func NewRun(observer Observer, id types.UID, controller string, object Object) *Run {
	if observer == nil {
		return nil
	}
	return &Run{ID: id, Controller: controller, Object: object, observer: observer}
}

// Note tells the observers of the run that something happened now. To make an event costs something also when nobody listens, so look
// whether r is nil before.
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

// RunFromContext returns the run that ctx carries, nil if nobody listens:
//
//	if run := journal.RunFromContext(ctx); run != nil {
//		run.Note(ctx, journal.Called{What: "POST /buckets", Err: err})
//	}
func RunFromContext(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}
