// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A Request is one reconcile of one object, as its steps see it. It is made for the reconcile and
// must not be kept.
//
// A test may make one by hand, or with steptest.NewRequest: then no step of an engine is around it.
// EnsureFresh returns nil, Snapshot what Object was when it was first asked for, and nothing is
// told to a journal.
type Request[T client.Object] struct {
	// Object is the object, a copy that belongs to the request. Steps change its metadata and
	// status; the engine saves it.
	Object T

	// Client is the engine's client. What is read and written through it is told to the journal,
	// and watched for hot loops. A write of Object itself is a Save, and to read Object again
	// leaves it as it is.
	Client client.Client

	// APIReader reads from the API server, past the cache. It is nil if the engine was not given one.
	APIReader client.Reader

	// Logger has the object in its values.
	Logger logr.Logger

	// Conditions are those of the object, ready to be set. A type without conditions has none: then
	// it is nil.
	Conditions *condition.Set

	// Now is the time of the reconcile: all steps agree on what is due.
	Now time.Time

	snapshot T
	failure  error
	ran      []bool // for each part: it was run, or is not needed
	core     *core
	owner    string // the field owner of what is applied
	gate     *gate  // of steps that run at the same time; nil if none do

	finalizer string
	// protect puts the finalizer on the object before a Do; nil if there is none.
	protect func(ctx context.Context) error
	// save writes what has changed; nil if nothing is to be saved.
	save func(ctx context.Context) error

	mu    sync.Mutex // for all below
	data  map[any]any
	errs  map[int]error // what Do of a part has returned; waits and exits are among it
	taken bool          // a request that was made by hand has its snapshot
}

// Save writes what has changed in the metadata and the status of Object now, instead of at the end
// of the reconcile. Call it for what must not be lost before the step continues: the intent to make
// something outside the cluster, before it is made, or the id that it got.
//
//   - It costs one request for the metadata and one for the status, each only if that part has
//     changed, and none if nothing has.
//   - What other clients have written meanwhile to other fields stays. If they have changed the
//     same fields, nothing is overwritten: the error is a conflict, to be returned by the step.
//   - Conditions are not saved: they are computed when all steps are done. Those that a step has
//     set on Object itself are.
//   - For an object that is already gone, and in a request that was made by hand, it does nothing
//     and returns nil.
//   - In a [Group] it waits until the steps that run at the same time have ended or save, too,
//     because it reads the object that they change. The context must be that of the step, or made
//     from it.
func (r *Request[T]) Save(ctx context.Context) error {
	if r.save == nil {
		return nil
	}
	return exclusively(ctx, func() error { return r.save(ctx) })
}

// Snapshot returns the object as it was when the reconcile began. It belongs to the cache: it must
// not be changed.
func (r *Request[T]) Snapshot() T {
	if r.core != nil {
		return r.snapshot
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.taken {
		r.snapshot, r.taken = r.Object.DeepCopyObject().(T), true //nolint:errcheck // a copy has the type
	}
	return r.snapshot
}

// Failure returns what has failed in Do or Cleanup, without waits. It is for Post.
func (r *Request[T]) Failure() error { return r.failure }

// EnsureFresh returns a wait, as an error, if the API server has a newer version of the object than
// the reconcile has begun with, or none. Call it before something outside the cluster is made that
// an object which is gone would leave behind: after a restart the cache may be as far behind as an
// API server is. Writes through Client ask it by themselves. It costs a live read once for each
// object and process, and nothing after that; without Options.APIReader it returns nil.
func (r *Request[T]) EnsureFresh(ctx context.Context) error {
	if r.core == nil {
		return nil
	}
	return r.core.mayWrite(ctx)
}

// A Key is the name and the type of what a step leaves to later steps of the same reconcile. Each
// key is one of its own, also if it has the name of another.
//
//	var quotient = step.NewKey[int]("quotient")
//	...
//	step.Put(req, quotient, 42)
//	q, ok := step.Lookup(req, quotient)
type Key[V any] struct{ name *string }

// NewKey returns a key. The name is for messages.
func NewKey[V any](name string) Key[V] { return Key[V]{&name} }

// String returns the name of the key.
func (k Key[V]) String() string { return *k.name }

// Put leaves a value to later steps of the reconcile. It is safe for concurrent use, as [Lookup]
// is; the value itself is not copied.
func Put[V any, T client.Object](req *Request[T], key Key[V], value V) {
	req.mu.Lock()
	defer req.mu.Unlock()
	if req.data == nil {
		req.data = make(map[any]any)
	}
	req.data[key.name] = value
}

// Lookup returns what an earlier step of the same reconcile has put, and whether one has.
func Lookup[V any, T client.Object](req *Request[T], key Key[V]) (V, bool) {
	req.mu.Lock()
	defer req.mu.Unlock()
	v, ok := req.data[key.name].(V)
	return v, ok
}

type stepKey struct{}

// stepFrom returns the name of the step that runs with a context, empty if none does. Steps may run
// at the same time, so that nothing else knows it.
func stepFrom(ctx context.Context) string {
	name, _ := ctx.Value(stepKey{}).(string)
	return name
}

type requestKey struct{}

func requestFrom[T client.Object](ctx context.Context) *Request[T] {
	return ctx.Value(requestKey{}).(*Request[T]) //nolint:errcheck // the engine has put it there
}

// skip notes that a step is not needed.
func (r *Request[T]) skip(ctx context.Context, p *part[T]) {
	r.ran[p.index] = true
	if r.Conditions != nil {
		for _, d := range p.declared {
			r.Conditions.MarkHealthy(d.Type, ReasonNotNeeded, "")
		}
	}
	if r.core.run != nil {
		r.core.run.Note(ctx, journal.StepSkipped{Step: p.step.Name()})
	}
}

// observe calls a phase of a step, and tells the journal.
func (r *Request[T]) observe(
	ctx context.Context, p *part[T], phase journal.Phase, call func(context.Context, *Request[T]) (ctrl.Result, error),
) (result ctrl.Result, err error) {
	if phase == journal.PhaseDo {
		r.ran[p.index] = true
		result, err = ctrl.Result{}, errPanicked
		defer func() { r.did(p.index, err) }()
	}
	run := r.core.run
	if run == nil {
		r.gate.begin(p.index)
		return call(ctx, r)
	}
	name := p.step.Name()
	ctx = context.WithValue(ctx, stepKey{}, name)
	run.Note(ctx, journal.StepBegan{Step: name, Phase: phase})
	r.gate.begin(p.index)
	began := time.Now()
	outcome := journal.Outcome{Err: errPanicked}
	defer func() { // also when it panics, which the action around this catches
		run.Note(ctx, journal.StepEnded{Step: name, Phase: phase, Outcome: outcome, Duration: time.Since(began)})
	}()
	result, err = call(ctx, r)
	outcome = outcomeOf(r.core.table, result, err)
	return result, err
}

// did remembers what Do of a part has returned, if it did not simply pass.
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

// outcomeOf returns an outcome as the journal tells it.
func outcomeOf(table failure.Table, result ctrl.Result, err error) journal.Outcome {
	o := journal.Outcome{RequeueAfter: result.RequeueAfter}
	if err == nil {
		return o
	}
	for _, w := range ctrlkit.Waits(err) {
		o.Waits = append(o.Waits, journal.Wait{For: w.For, Every: w.Every})
	}
	if _, o.Err = ctrlkit.IgnoreExit(result, err); o.Err != nil {
		verdict := table.Classify(o.Err)
		o.Class, o.Remedy = string(verdict.Class), verdict.Remedy
	}
	return o
}

// actionEvents tells the journal of the actions of a workflow.
type actionEvents struct {
	run   *journal.Run
	step  string
	table failure.Table
}

var _ ctrlkit.BlockHook = (*actionEvents)(nil)

type actionBegan struct{}

func (a *actionEvents) BeforeAction(ctx context.Context, action string) context.Context {
	a.run.Note(ctx, journal.ActionBegan{Step: a.step, Action: action})
	return context.WithValue(ctx, actionBegan{}, time.Now())
}

func (a *actionEvents) AfterAction(ctx context.Context, action string, result ctrl.Result, err error) {
	began, _ := ctx.Value(actionBegan{}).(time.Time)
	a.run.Note(ctx, journal.ActionEnded{Step: a.step, Action: action, Outcome: outcomeOf(a.table, result, err), Duration: time.Since(began)})
}

func (a *actionEvents) ActionBlocked(ctx context.Context, action string, by []string) {
	a.run.Note(ctx, journal.ActionBlocked{Step: a.step, Action: action, By: by})
}
