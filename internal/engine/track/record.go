// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// History is what earlier reconciles know of the objects that they have written.
type History interface {
	// Known returns before, the state of an object before a write, or nil if it is older than the
	// answer to our last write. It reports whether the API server is to be asked for the state
	// instead, because a hot loop is suspected.
	Known(object journal.Object, before *Snapshot) (state *Snapshot, suspected bool)

	// Answered reports whether the API server answered our last write to the object with version.
	Answered(object journal.Object, version string) bool
}

// A Record is what one reconcile reads and writes through its clients. Its exported fields are set
// before it is used. It is safe for concurrent use, because the actions of a workflow may run at
// the same time.
type Record struct {
	Journal *journal.Run // nil without an observer
	Owner   string       // the field owner of writes that name no other

	// Fence makes sure before the first write that the reconciled object is not stale; nil if that
	// is not needed.
	Fence func(ctx context.Context) error

	// What is known of objects before they are written: the reconciled one as it was read, and what
	// the API server says, which may be nil.
	Self      client.Object
	APIReader client.Reader

	// Object is that of the request. A step that writes it through the client has it saved instead,
	// by Save: there is one write path. To read it again leaves it as it is. ReadOnly returns the
	// error of a patch that changes fields which are not the operator's.
	Object   client.Object
	Save     func(ctx context.Context) error
	ReadOnly func(fields []string) error

	// Watched are the kinds whose changes reach the controller; nil if that is not known.
	Watched *Watched

	// Reading is called before an object is read by its name; nil if that need not be known.
	Reading func(kind schema.GroupKind, key client.ObjectKey)

	mu      sync.Mutex // for all below
	history History    // nil when the reconcile has ended
	fenced  bool
	stale   error // the answer of the fence
	writes  []*Write
	// inVain are writes that changed nothing, before which the API server was asked because of a
	// suspicion.
	inVain []*Write
	// refused is true once the API server did not accept a write.
	refused bool
	// answers are what the API server answered to writes of this reconcile.
	answers map[journal.Object]*Snapshot
	reads   *Versions // of what was read; nil if they are not wanted
	inputs  *Inputs   // nil if they are not wanted
	// cached are the types that were read, and children what was written of these types.
	cached   map[reflect.Type]bool
	children []input
	// absent are the objects that were read last and were not there.
	absent map[absentee]bool
	// unwatched are reads of kinds that nothing watches.
	unwatched []UnwatchedRead

	parent *Record // where the writes are noted, if not here
}

// Watch has the record compare its writes with history, and note the versions that are read, unless
// reads is nil.
func (r *Record) Watch(history History, reads *Versions) { r.history, r.reads = history, reads }

// NoteInputs has the record note what is read.
func (r *Record) NoteInputs() { r.inputs = &Inputs{} }

// Unfenced returns a record for writes of the reconciled object. They carry a resource version,
// which the API server compares: they need no fence. They are noted in r.
func (r *Record) Unfenced() *Record { return &Record{Journal: r.Journal, parent: r} }

// root returns the record of all writes of the reconcile.
func (r *Record) root() *Record {
	if r.parent != nil {
		return r.parent
	}
	return r
}

// MayWrite asks the fence before each write, and keeps its answer for the reconcile. Two writes at
// the same time may both ask.
func (r *Record) MayWrite(ctx context.Context) error {
	if r.Fence == nil {
		return nil
	}
	r.mu.Lock()
	fenced, stale := r.fenced, r.stale
	r.mu.Unlock()
	if fenced {
		return stale
	}
	stale = r.Fence(ctx) // without the lock: it is a request
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fenced, r.stale = true, stale
	return stale
}

// Close ends the use of the history, which the end of the reconcile changes: an action that has not
// ended in time finds nothing any more.
func (r *Record) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = nil
}

// Writes returns the writes that changed something.
func (r *Record) Writes() []*Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// InVain returns the writes that changed nothing, before which the API server was asked.
func (r *Record) InVain() []*Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inVain
}

// Refused reports whether the API server refused a write.
func (r *Record) Refused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Reads returns the versions that were read, nil if they were not wanted.
func (r *Record) Reads() *Versions { return r.reads }

// Inputs returns what was read, nil if that is not all the reconcile depends on, or not wanted. Of
// what was written, they have the version after that.
func (r *Record) Inputs() *Inputs {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inputs != nil {
		for _, child := range r.children {
			r.inputs.wrote(child)
		}
	}
	if r.inputs == nil || r.inputs.unknown {
		return nil
	}
	return r.inputs
}

// Children returns the cached objects that were written, besides the reconciled one.
func (r *Record) Children() []input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.children
}

// target returns what is read instead of obj: an empty object for that of the request, which keeps
// what steps have changed and what was saved. What other clients have changed meanwhile is merged
// when it is saved.
func (r *Record) target(key client.ObjectKey, obj client.Object) client.Object {
	if r.Object == nil || obj != r.Object || key != client.ObjectKeyFromObject(obj) {
		return obj
	}
	return EmptyOf(obj).(client.Object) //nolint:errcheck // of the same type
}

// saves reports whether a write of obj is one of the object of the request, which the engine saves.
// The error says that the write would change what is not the operator's. Patch is nil for an
// update.
func (r *Record) saves(obj client.Object, sub string, patch client.Patch) (bool, error) {
	if r.Object == nil || obj != r.Object || sub != "" && sub != "status" {
		return false, nil
	}
	if patch == nil {
		return true, nil
	}
	if patch.Type() != types.MergePatchType && patch.Type() != types.StrategicMergePatchType {
		return false, nil // it was not made from the object
	}
	var content map[string]any
	data, err := patch.Data(obj)
	if err != nil || json.Unmarshal(data, &content) != nil {
		return false, err
	}
	delete(content, "metadata")
	delete(content, "status")
	if len(content) > 0 {
		return false, r.ReadOnly(Fields(content))
	}
	return true, nil
}

// wrote notes a write, and records it in the journal. No-ops are only recorded in the journal.
func (r *Record) wrote(ctx context.Context, w *Write, err error) {
	var fields []string
	if r.Journal != nil {
		fields = w.Sent.Paths()
	}
	to := r.root()
	to.mu.Lock()
	switch {
	case err != nil:
		to.refused = true
	case w.NoOp && w.Verified:
		to.inVain = append(to.inVain, w)
	case !w.NoOp:
		to.writes = append(to.writes, w)
	}
	if err == nil && w.After != nil {
		if to.answers == nil {
			to.answers = make(map[journal.Object]*Snapshot)
		}
		to.answers[w.Object] = w.After
	}
	to.mu.Unlock()
	if r.Journal != nil {
		r.Journal.Note(ctx, journal.Wrote{
			Step: StepFrom(ctx), Verb: w.Verb, Object: w.Object, Subresource: w.Subresource, Fields: fields, NoOp: w.NoOp && err == nil, Err: err,
		})
	}
}

// knows reports whether the object had a version before the write.
func (r *Record) knows(w *Write, version string) bool {
	if w.Verb == "create" {
		return false
	}
	if w.Before != nil && w.Before.Version == version {
		return true
	}
	to := r.root()
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.history != nil && to.history.Answered(w.Object, version)
}

// noteUncached notes that something was read that no cache has: a change of it is not noticed.
func (r *Record) noteUncached(ctx context.Context) {
	if isOwn(ctx) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inputs != nil {
		r.inputs.unknown = true
	}
}

// noteRead notes that there is a cache for a type: to read from a cache that does not exist yet
// would create it. The caller has the lock.
func (r *Record) noteRead(obj runtime.Object) {
	if t := typeOf(obj); t != nil {
		if r.cached == nil {
			r.cached = make(map[reflect.Type]bool)
		}
		r.cached[t] = true
	}
}

// got notes the answer to a read of an object.
func (r *Record) got(key client.ObjectKey, obj client.Object, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteRead(obj)
	if r.inputs != nil {
		r.inputs.got(key, obj, err)
	}
	if err == nil {
		r.reads.note(obj)
	}
	r.noteAbsent(key, obj, apierrors.IsNotFound(err))
}

// An absentee names an object that was not there.
type absentee struct {
	t   reflect.Type
	key client.ObjectKey
}

// noteAbsent notes whether an object was there. The caller has the lock.
func (r *Record) noteAbsent(key client.ObjectKey, obj client.Object, absent bool) {
	if standsForAny(obj) || !absent && len(r.absent) == 0 {
		return
	}
	if r.absent == nil {
		r.absent = make(map[absentee]bool)
	}
	r.absent[absentee{reflect.TypeOf(obj), key}] = absent
}

// listed notes the answer to a read of a list.
func (r *Record) listed(list client.ObjectList, opts []client.ListOption, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteRead(list)
	if r.inputs != nil {
		r.inputs.listed(list, opts, err)
	}
	if err == nil {
		r.reads.noteAll(list)
	}
}

// DependOn notes a number that the outcome depends on.
func (r *Record) DependOn(now func() uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inputs != nil {
		r.inputs.depend(now)
	}
}

// noteChild notes a version that the cache has yet to receive, and reports whether there is a cache.
func (r *Record) noteChild(t reflect.Type, key client.ObjectKey, version string) bool {
	if r.parent != nil || version == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cached[t] {
		r.children = append(r.children, input{kind: kindOf(NewOf(t)), key: key, version: version})
	}
	return r.cached[t]
}

// dependsOn notes an object that a write found as it should be.
func (r *Record) dependsOn(t reflect.Type, key client.ObjectKey, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.inputs == nil || r.parent != nil:
	case r.cached[t]:
		r.inputs.add(input{kind: kindOf(NewOf(t)), key: key, version: version})
	default:
		r.inputs.unknown = true // no cache has it
	}
}

// WithStep returns a context for the calls of a step.
func WithStep(ctx context.Context, name string) context.Context {
	return journal.ContextWithStep(ctx, name)
}

// StepFrom returns the name of the step that runs with a context, empty if none does. Steps may run
// at the same time, so that nothing else knows it.
func StepFrom(ctx context.Context) string { return journal.StepFromContext(ctx) }
