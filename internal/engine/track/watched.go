// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// UnwatchedMessage is the message that an engine logs for a kind that its steps read and nothing
// watches. Package sim looks for it.
const UnwatchedMessage = "Reading a kind that nothing watches"

// The keys of the values that an engine logs with [UnwatchedMessage].
const (
	UnwatchedKind = "readKind" // "Secret", "Job.batch"
	UnwatchedStep = "step"
)

// Watched are the kinds whose changes reach a controller, or do not matter to it. It is safe for
// concurrent use.
type Watched struct {
	kinds map[schema.GroupKind]reach
	// read has the types that were read. It is replaced with a larger one, because reads of it are
	// many and new types are few.
	read atomic.Pointer[map[kindKey]watchedKind]
	mu   sync.Mutex // for replacing read
}

// A reach says of which objects of a kind a change reaches the controller.
type reach int

const (
	reachNone  reach = iota
	reachOwned       // only of those that the reconciled object owns
	reachAll
)

// A watchedKind is a kind that was read. The zero value is of one that is not known.
type watchedKind struct {
	kind  schema.GroupKind
	reach reach
}

// NewWatched returns the set of these kinds, and of those of which only what the reconciled object owns
// is watched.
func NewWatched(kinds, owned []schema.GroupKind) *Watched {
	w := &Watched{kinds: make(map[schema.GroupKind]reach, len(kinds)+len(owned))}
	for _, kind := range owned {
		w.kinds[kind] = reachOwned
	}
	for _, kind := range kinds {
		w.kinds[kind] = reachAll
	}
	return w
}

// of returns the kind of an object or a list.
func (w *Watched) of(obj runtime.Object, c client.Client) watchedKind {
	key := kindKey{t: reflect.TypeOf(obj)}
	if standsForAny(obj) {
		key.gvk = obj.GetObjectKind().GroupVersionKind()
	}
	if read := w.read.Load(); read != nil {
		if kind, ok := (*read)[key]; ok {
			return kind
		}
	}
	return w.add(key, obj, c)
}

// add looks at a type that was not read before.
func (w *Watched) add(key kindKey, obj runtime.Object, c client.Client) watchedKind {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return watchedKind{reach: reachAll} // the read has failed
	}
	kind := gvk.GroupKind()
	if meta.IsListType(obj) {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	known := watchedKind{kind, w.kinds[kind]}
	w.mu.Lock()
	defer w.mu.Unlock()
	larger := make(map[kindKey]watchedKind)
	if read := w.read.Load(); read != nil {
		maps.Copy(larger, *read)
	}
	larger[key] = known
	w.read.Store(&larger)
	return known
}

type promptKey struct{}

// WithPrompt returns a context for reads whose changes have to reach the object at once: no requested
// time is soon enough. Read is called with each object that was read.
func WithPrompt(ctx context.Context, read func(obj client.Object)) context.Context {
	return context.WithValue(ctx, promptKey{}, read)
}

// An UnwatchedRead is a read of a kind that nothing watches.
type UnwatchedRead struct {
	Step string // empty if it is not known
	// Object has no name for a list.
	Object journal.Object
	// Prompt says that it was read with a context of [WithPrompt].
	Prompt bool
	absent bool
}

// Kind returns the kind that was read.
func (u UnwatchedRead) Kind() schema.GroupKind {
	return schema.GroupKind{Group: u.Object.Group, Kind: u.Object.Kind}
}

type ownKey struct{}

// WithOwn returns a context whose reads and writes are of records that the operator alone writes:
// no change of them has to wake anything, or is an input of a reconcile.
func WithOwn(ctx context.Context) context.Context { return context.WithValue(ctx, ownKey{}, true) }

func isOwn(ctx context.Context) bool { return ctx.Value(ownKey{}) != nil }

// noteUnwatched notes that an object or a list was read, if nothing watches it. A read that has failed
// says nothing, and ends in a retry.
func (r *Client) noteUnwatched(ctx context.Context, obj runtime.Object, key client.ObjectKey, err error) {
	if read, ok := ctx.Value(promptKey{}).(func(client.Object)); ok && err == nil {
		if one, ok := obj.(client.Object); ok {
			read(one)
		}
	}
	w := r.record.Watched
	if w == nil || isOwn(ctx) || err != nil && !apierrors.IsNotFound(err) {
		return
	}
	known, prompt := w.of(obj, r.Client), ctx.Value(promptKey{}) != nil
	if known.reach == reachNone || known.reach == reachOwned && r.record.isForeign(obj, err, prompt) {
		r.record.noteUnwatched(UnwatchedRead{StepFrom(ctx), journal.ObjectOf(known.kind, key), prompt, err != nil})
	}
}

// isForeign reports whether an object was read that the reconciled one does not own. One that is not
// there may become its child, unless it was read with a context of [WithPrompt]. Of a list, the objects
// that it owns are meant.
func (r *Record) isForeign(obj runtime.Object, err error, prompt bool) bool {
	read, ok := obj.(client.Object)
	if !ok || err != nil || r.Self == nil {
		return prompt
	}
	return !slices.ContainsFunc(read.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == r.Self.GetUID() })
}

// noteUnwatched keeps one read for each kind: that of an object which was not there, if there is one,
// because it may be waited for.
func (r *Record) noteUnwatched(read UnwatchedRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.unwatched, func(u UnwatchedRead) bool { return u.Kind() == read.Kind() })
	switch {
	case i < 0:
		r.unwatched = append(r.unwatched, read)
	case read.Prompt != r.unwatched[i].Prompt && read.Prompt, read.Prompt == r.unwatched[i].Prompt && read.absent && !r.unwatched[i].absent:
		r.unwatched[i] = read
	}
}

// Unwatched returns reads of kinds that nothing watches, one for each kind.
func (r *Record) Unwatched() []UnwatchedRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unwatched
}
