// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A Request is one reconcile of one object, as its steps see it. It is made for the reconcile and
// must not be kept.
//
// A test may make one by hand, or with ctrlkittest.NewRequest. No engine is around such a request:
//
//   - Save and EnsureFresh return nil.
//   - Snapshot returns what Object was when Snapshot was first called.
//   - Nothing is recorded in a journal.
type Request[T client.Object] struct {
	// Object is the object, a copy that belongs to the request. Steps change its metadata and
	// status; the engine saves it.
	Object T

	// Client is the engine's client. Reads and writes through it are recorded in the journal, and
	// watched for hot loops. A write of Object itself is a Save, and to read Object again leaves it
	// as it is.
	Client client.Client

	// APIReader reads from the API server instead of the cache. It is nil if the engine has none.
	APIReader client.Reader

	// Logger has the object in its values.
	Logger logr.Logger

	// Conditions are those of the object, ready to be set. It is nil for a type without conditions.
	Conditions *condition.Set

	// Recorder is the event recorder of the engine, for what takes one and for events that relate to
	// another object; nil if the engine has none. For an event about Object, [Request.Event] is shorter.
	Recorder events.EventRecorder

	// Now is the time of the reconcile: all steps agree on what is due.
	Now time.Time

	snapshot T
	failure  error
	ran      []bool // for each part: it was run, or is not needed
	record   *track.Record
	journal  *journal.Run // nil without an observer
	table    *failure.Table
	owner    string        // the field owner of what is applied
	limit    time.Duration // of each phase of a step; zero if there is none
	places   *places       // of steps that run at the same time; nil if none do

	finalizer  string
	retired    []string // finalizers of older versions of the operator
	group      string   // of the kind
	claimsOnly bool     // the finalizer is there for one Claimer
	// onlySaved reports whether nothing has changed but what the last reconcile has saved; nil if
	// something has.
	onlySaved func() bool
	managed   []metav1.ManagedFieldsEntry // newer than those of the snapshot; nil if there are none
	// protect puts the finalizer on the object before a Do; nil if there is none.
	protect func(ctx context.Context) error
	// saveClaim writes what a Claim has changed, and the finalizer; nil without an engine.
	saveClaim func(ctx context.Context) error
	// save writes what has changed; nil if nothing is to be saved.
	save func(ctx context.Context) error

	mu   sync.Mutex // for all below
	data map[any]any
	errs map[int]error // what Do of a part has returned, including waits and exits
	// untimed are the steps that wait and have asked for no time. It is known with a journal only.
	untimed []string
	taken   bool // a request that was made by hand has its snapshot
}

// Save writes what has changed in the metadata and the status of Object now, instead of at the end
// of the reconcile. Call it for what must not be lost before the step continues: the intent to make
// something outside the cluster, before it is made, or the id that it was given.
//
//   - It costs one request for the metadata and one for the status, each only if that part has
//     changed, and none if nothing has.
//   - Other fields that other clients have written meanwhile stay. If they have changed the same
//     fields, nothing is overwritten: the error is a conflict, to be returned by the step.
//   - Conditions are not saved: they are computed when all steps are done. Those that a step has
//     set on Object itself are.
//   - For an object that is already gone, and in a request that was made by hand, it does nothing
//     and returns nil.
//   - In a [Group] it waits until the steps that run at the same time have ended or call it, too,
//     because it reads the object that they change. The context must be that of the step, or made
//     from it.
func (r *Request[T]) Save(ctx context.Context) error {
	if r.save == nil {
		return nil
	}
	return exclusively(ctx, func() error { return r.save(ctx) })
}

// RequestFor returns a request for one object, for a program that asks what a step would do: an
// upgrade that prints apply.PlanFor of each object before it starts. It is as if it were made by
// hand (see [Request]), but has the engine's name as the owner of what it writes, and its client
// sends writes as dry runs. Calls outside the cluster are not held back.
//
// The object is read through Options.Client, or from APIReader if there is one. The error is that of
// reading it.
func (e *Engine[T]) RequestFor(ctx context.Context, key client.ObjectKey) (*Request[T], error) {
	var reader client.Reader = e.options.Client
	if e.options.APIReader != nil {
		reader = e.options.APIReader
	}
	obj := e.resource.newObject()
	if err := reader.Get(ctx, key, obj); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", e.resource.kind, key, err)
	}
	req := &Request[T]{
		Object: obj, Client: client.NewDryRunClient(client.WithFieldOwner(e.options.Client, e.options.Name)),
		APIReader: e.options.APIReader, Logger: log.FromContext(ctx), Now: time.Now(), table: &e.options.Failures,
	}
	req.complete(e.plan, e.options.Name, e.resource.kind.Group, &e.finalizers)
	req.Snapshot() // from now on it is known
	if set, err := condition.NewSet(obj, condition.Options{Declared: e.plan.declared, Retired: e.options.Retired, Partial: e.options.Partial, Now: req.Now}); err == nil {
		req.Conditions = set
	}
	return req, nil
}

// Snapshot returns the object as it was when the reconcile began. It belongs to the cache and must
// not be changed.
func (r *Request[T]) Snapshot() T {
	if r.record != nil {
		return r.snapshot
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.taken {
		r.snapshot, r.taken = r.Object.DeepCopyObject().(T), true //nolint:errcheck // a copy has the type
	}
	return r.snapshot
}

// Event records a Kubernetes event about the object, with the recorder of the engine: without one it
// does nothing. EventType is corev1.EventTypeNormal or corev1.EventTypeWarning, action is what was
// done, such as "Delete". A text of more than 1024 bytes is cut. Events of one type, reason and
// action are one series, with the text of the first one, and too many are dropped, as client-go
// does.
func (r *Request[T]) Event(eventType, reason, action, format string, args ...any) {
	if r.Recorder != nil {
		r.Recorder.Eventf(r.Object, nil, eventType, reason, action, format, args...)
	}
}

// Failure returns what has failed in Do or Cleanup, without waits. It is for Step.Post.
func (r *Request[T]) Failure() error { return r.failure }

// EnsureFresh returns a wait, as an error, if the API server has a newer version of the object than
// the reconcile has begun with, or none. Call it before something outside the cluster is made that
// would stay behind if the object is gone: after a restart the cache may lag as far as an API
// server does.
//
//   - Writes through Client call it.
//   - It costs a live read once for each object and process, and nothing after that. It costs none
//     for an object that was written since the engine has first written one of the kind, such as a
//     new one.
//   - Without Options.APIReader it returns nil.
func (r *Request[T]) EnsureFresh(ctx context.Context) error {
	if r.record == nil {
		return nil
	}
	return r.record.MayWrite(ctx)
}

// DependOn declares that what a step does depends on something beside Object and what it reads
// through Client: what it has from a [Watch] by Note. Changes returns a number that is another one
// after each change of that. With Options.SkipUnchanged, the steps are run again when it has changed.
//
// It is called before the step uses what changes counts. Changes is kept as long as the object is
// idle, with all that it refers to: it must not refer to the request.
func (r *Request[T]) DependOn(changes func() uint64) {
	if r.record != nil {
		r.record.DependOn(changes)
	}
}

// OnlySaved reports whether nothing has changed since the last reconcile of the object but what
// that one has saved of it, and written of others of kinds that it reads: the event of its own write
// has triggered this one. A step need not repeat a read outside the cluster of a moment ago.
//
// It needs Options.SkipUnchanged and what that requires, and shows no more than that option does:
// what was read through Client is unchanged, as its cache shows. It is false if the last reconcile
// has failed, waited, deleted an object or written one of a kind that it does not read, is a minute
// ago, or was in another process.
func (r *Request[T]) OnlySaved() bool { return r.onlySaved != nil && r.onlySaved() }

// Classify classifies an error as the engine will, by Options.Failures: for what a step says of it
// in a condition of its own, which then agrees with Ready and Stalled.
func (r *Request[T]) Classify(err error) failure.Classification {
	if r.table == nil {
		return failure.Classify(err)
	}
	return r.table.Classify(err)
}

// defaultOwner is the field owner of requests that no engine has made.
const defaultOwner = "ctrlkit"

// FieldOwner returns the field owner of what the engine writes, for what a step applies itself.
func (r *Request[T]) FieldOwner() string { return cmp.Or(r.owner, defaultOwner) }

// Annotate sets an annotation of Object, or removes it if value is empty, and saves it at once; see
// [Request.Save]. Steps of a [Group] may each set annotations of their own with it: it waits until
// the steps that run at the same time have ended or save, too.
func (r *Request[T]) Annotate(ctx context.Context, key, value string) error {
	return exclusively(ctx, func() error {
		annotations := maps.Clone(r.Object.GetAnnotations())
		if annotations[key] == value {
			return nil
		}
		if annotations == nil {
			annotations = make(map[string]string, 1)
		}
		if annotations[key] = value; value == "" {
			delete(annotations, key)
		}
		r.Object.SetAnnotations(annotations)
		if r.save == nil {
			return nil
		}
		return r.save(ctx)
	})
}

type requestKey struct{}

func requestFrom[T client.Object](ctx context.Context) *Request[T] {
	return ctx.Value(requestKey{}).(*Request[T]) //nolint:errcheck // put there by the engine
}

// skip notes that a step is not needed.
func (r *Request[T]) skip(ctx context.Context, p *part[T]) {
	r.ran[p.index] = true
	if r.Conditions != nil {
		for _, d := range p.Conditions {
			r.Conditions.MarkHealthy(d.Type, reasonNotNeeded, "")
		}
	}
	if r.journal != nil {
		r.journal.Note(ctx, journal.StepSkipped{Step: p.Name})
	}
}

// observe calls a phase of a step, and records it in the journal.
func (r *Request[T]) observe(
	ctx context.Context, p *part[T], phase journal.Phase, call func(context.Context, *Request[T]) error,
) (err error) {
	if phase == journal.PhaseDo {
		r.ran[p.index] = true
		err = errPanicked
		defer func() { r.did(p.index, err) }()
	}
	run := r.journal
	if run == nil {
		r.places.begin(p.index)
		return r.limited(ctx, p, phase, call)
	}
	name := p.Name
	ctx = track.WithStep(ctx, name)
	run.Note(ctx, journal.StepBegan{Step: name, Phase: phase})
	r.places.begin(p.index)
	began := time.Now()
	outcome := journal.Outcome{Err: errPanicked}
	defer func() { // also when it panics, which the action around this catches
		if value := recover(); value != nil {
			outcome = outcomeOf(r.table, ctrl.Result{}, &ctrlkit.PanicError{Value: value})
			defer panic(value) // the stack is still there
		}
		run.Note(ctx, journal.StepEnded{Step: name, Phase: phase, Outcome: outcome, Duration: time.Since(began)})
	}()
	err = r.limited(ctx, p, phase, call)
	outcome = outcomeOf(r.table, ctrl.Result{}, err)
	if len(outcome.Waits) > 0 && outcome.RequeueAfter == 0 {
		r.mu.Lock()
		r.untimed = append(r.untimed, name)
		r.mu.Unlock()
	}
	if outcome.Err == nil && phase != journal.PhasePost {
		outcome.Stalled = stalledBy(r.Conditions, p.Conditions)
	}
	return err
}

// did notes what Do of a part has returned, if it did not simply pass.
func (r *Request[T]) did(index int, err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs == nil {
		r.errs = make(map[int]error)
	}
	r.errs[index] = err
}

// allRan reports whether Do of all steps was run, or not needed.
func (r *Request[T]) allRan() bool { return !slices.Contains(r.ran, false) }

// complete sets what the engine knows.
func (r *Request[T]) complete(p *plan[T], owner, group string, f *finalizers) {
	r.group = group
	r.owner, r.finalizer, r.retired, r.ran, r.claimsOnly = owner, f.own, f.retired, make([]bool, len(p.parts)), onlyClaims(p.parts)
	if p.groups {
		r.places = newPlaces(len(p.parts))
	}
}

// guard puts the finalizer on the object before a step. Before a step of a group it does so while
// no other step runs.
func (r *Request[T]) guard(ctx context.Context, p *part[T]) error {
	switch {
	case r.protect == nil:
		return nil
	case !p.grouped:
		return r.protect(ctx)
	case slices.Contains(r.snapshot.GetFinalizers(), r.finalizer):
		return nil
	}
	return exclusively(ctx, func() error { return r.protect(ctx) })
}

// claim calls Claim of a step, and writes what it has claimed. Its failure is that of Do.
func (r *Request[T]) claim(ctx context.Context, p *part[T]) (err error) {
	defer func() {
		if err != nil {
			r.ran[p.index] = true
			r.did(p.index, err)
		}
	}()
	nothing := false
	err = r.observe(ctx, p, journal.PhaseClaim, func(ctx context.Context, req *Request[T]) error {
		err := p.Claim(ctx, req)
		if nothing = errors.Is(err, ErrNothingToClaim); nothing {
			err = nil
		}
		return err
	})
	if err != nil || nothing || r.saveClaim == nil {
		return err
	}
	return exclusively(ctx, func() error { return r.saveClaim(ctx) })
}

// errPanicked stands for the error of a step that has panicked: the action around it makes the real
// one.
var errPanicked = errors.New("panicked")
