// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
)

// memories are what an engine knows of its objects beyond the cluster. It may be lost at any time:
// it saves work, makes things quieter, and helps to explain, and nothing else.
type memories[T client.Object] struct {
	mu  sync.Mutex // for all
	all map[types.NamespacedName]*memory[T]
}

// of returns the memory of an object. The queue never runs two reconciles of an object at once, so
// that it needs no lock of its own; what events leave in it has one.
func (m *memories[T]) of(key types.NamespacedName) *memory[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[types.NamespacedName]*memory[T])
	}
	if m.all[key] == nil {
		m.all[key] = &memory[T]{}
	}
	return m.all[key]
}

// forget drops the memory of an object that is gone.
func (m *memories[T]) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if memory := m.all[key]; memory != nil && !memory.hasLost() {
		delete(m.all, key)
	}
}

// A memory is what is known of one object, by its UID.
type memory[T client.Object] struct {
	uid     types.UID
	written string    // the resource version after our last write
	at      time.Time // of our last write
	missed  time.Time // when it was first seen to be gone although a clean-up is owed
	left    bool      // our last write was the last thing that kept the object

	next      time.Time // when the last reconcile wanted to be repeated
	failed    bool      // next is a backoff
	looked    bool      // there was a reconcile
	conflicts int       // in a row
	texts     time.Time // when the text of a failure was last written
	numbers   time.Time // since when one is held that says the same in other numbers; zero if none is

	rest rest
	hot  hot

	children   []input // what the last reconcile has written besides the object, until the cache knows it
	childrenAt time.Time

	mu        sync.Mutex // for all below, and for writing uid
	fresh     bool       // the cache was seen to be up to date with the object, by a write or a live read of this process
	finalized bool       // we have written our finalizer to the object, or seen it there
	held      string     // the resource version with which our finalizer was last seen on the object
	released  bool       // another client has taken it off
	noted     bool       // and the object says so
	live      string     // a resource version that the object had, past the cache
	cleaned   bool       // the clean-up was done
	dropped   types.UID  // of the object whose clean-up was last done from its last state
	lost      []T        // last states of objects that went without our clean-up
}

// rest is what was seen when the object was last done.
type rest struct {
	version string
	inputs  *inputs
	look    time.Time // when it wanted to be looked at again; zero for never
	until   time.Time // how long all this is believed
}

// startFor begins anew if the object is another one of the same name.
func (m *memory[T]) startFor(obj T) {
	if m.uid == obj.GetUID() {
		return
	}
	m.written, m.rest, m.hot, m.texts, m.numbers, m.left, m.missed = "", rest{}, hot{}, time.Time{}, time.Time{}, false, time.Time{}
	m.children = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uid, m.fresh, m.finalized, m.cleaned = obj.GetUID(), false, false, false
	m.held, m.released, m.noted, m.live = "", false, false, ""
}

// older reports whether a resource version is older than another. What can't be compared is older
// if it is not the same.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != than
	}
	return order < 0
}

// lookAgainBehind is when to look again at an object of which the cache does not know our last
// write. The event of that write comes sooner, most likely.
const lookAgainBehind = time.Second

// longestBehind is how long the cache may be behind before the reconcile runs all the same. The
// resource version that guards each write keeps it from doing harm.
const longestBehind = 10 * time.Second

// behind says whether obj is older than our own last write to it, or should be gone by that.
func (m *memory[T]) behind(obj T, now time.Time) bool {
	if m.written == "" || now.Sub(m.at) > longestBehind {
		return false
	}
	if m.left {
		return true
	}
	if m.written == obj.GetResourceVersion() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), m.written)
	return err == nil && order < 0
}

// wrote remembers our own write.
func (m *memory[T]) wrote(version string, now time.Time) {
	m.written, m.at = version, now
}

// setFresh and isFresh may be called by actions beside one another.
func (m *memory[T]) setFresh() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fresh = true
}

func (m *memory[T]) isFresh() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fresh
}

// ensureFresh returns a wait if the object that the reconcile has read may be older than the
// process has started. It asks for the newest version once for each object and process: as soon as
// the cache has that version, or a later one, its watch goes forward.
func (r *run[T]) ensureFresh(ctx context.Context) error {
	if r.memory.isFresh() { // the finalizer was written meanwhile
		return nil
	}
	if live := r.memory.newestSeen(); live == "" {
		obj, err := r.metadata(ctx)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("asking whether the cache is up to date: %w", err)
		case err == nil && obj.UID == r.read.GetUID():
			r.memory.sawLive(obj.ResourceVersion)
		}
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	version := r.read.GetResourceVersion()
	if !r.rebased {
		version = r.base().GetResourceVersion() // our own writes have followed one another
	}
	if live := r.memory.newestSeen(); live != "" && !older(version, live) {
		r.memory.setFresh()
		return nil
	}
	return r.awaitNewest()
}

// awaitNewest returns a wait, and has nothing be saved that follows from an old version. The caller
// has the lock.
func (r *run[T]) awaitNewest() error {
	r.stale = true
	_, wait := ctrlkit.PollFor("the newest version of the object to arrive in the cache", lookAgainBehind)
	return wait
}

// metadata reads the metadata of the object past the cache. It is for engines with Options.APIReader.
func (r *run[T]) metadata(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(r.engine.gvk)
	err := r.engine.options.APIReader.Get(ctx, r.key(), obj)
	if r.journal != nil {
		r.journal.Note(ctx, journal.Read{Step: stepFrom(ctx), Object: r.journal.Object, Live: true, Err: err})
	}
	return obj, err
}

// sawLive and newestSeen are about the newest version of the object that was seen past the cache.
func (m *memory[T]) sawLive(version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = version
}

func (m *memory[T]) newestSeen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live
}

// atRest says whether nothing has changed since the object was done.
func (m *memory[T]) atRest(ctx context.Context, obj T, reader client.Reader, now time.Time) bool {
	r := &m.rest
	return r.inputs != nil && r.version == obj.GetResourceVersion() && now.Before(r.until) &&
		(r.look.IsZero() || now.Before(r.look)) && r.inputs.unchanged(ctx, reader)
}

// untilLook returns how long it is until the object wanted to be looked at; zero for never.
func (m *memory[T]) untilLook(now time.Time) time.Duration {
	if m.rest.look.IsZero() {
		return 0
	}
	return m.rest.look.Sub(now)
}

// rememberRest notes what an object that is done has read, if that is all of it.
func (r *run[T]) rememberRest(out outcome) {
	in := r.core.inputs
	if in == nil || in.unknown || r.stale || r.saved.any() || len(r.core.written()) > 0 || r.memory.hot.text != "" {
		return
	}
	r.memory.rest = rest{version: r.read.GetResourceVersion(), inputs: in, until: r.now.Add(longestRest)}
	if out.after > 0 {
		r.memory.rest.look = r.now.Add(out.after)
	}
}

// plan remembers when the object is to be looked at, to tell later that it was a timer.
func (m *memory[T]) plan(now time.Time, after time.Duration, out outcome) {
	m.looked, m.failed, m.next = true, out.err != nil, time.Time{}
	if out.err != nil {
		after = out.delay
	}
	if after > 0 {
		m.next = now.Add(after)
	}
}

// explainCauses says why a reconcile runs: what events have told, and what is known without them.
func (m *memory[T]) explainCauses(told []seen, now time.Time) []journal.Cause {
	var causes []journal.Cause
	for _, s := range told {
		if s.cause.Kind == journal.CauseOwnChange && s.version != "" && s.version == m.written {
			s.cause.Kind = journal.CauseOwnWrite
		}
		causes = journal.MergeCauses(causes, s.cause)
	}
	if !m.next.IsZero() && !now.Before(m.next) {
		kind := journal.CauseTimer
		if m.failed {
			kind = journal.CauseBackoff
		}
		causes = journal.MergeCauses(causes, journal.Cause{Kind: kind})
	}
	switch {
	case len(causes) > 0:
		return causes
	case !m.looked:
		return []journal.Cause{{Kind: journal.CauseStart, Times: 1}}
	default:
		return []journal.Cause{{Kind: journal.CauseUnknown, Times: 1}}
	}
}

// lose decides what is to be done for an object that is gone, and keeps its last state if the
// clean-up is owed to it. Final says that last is the state in which it was deleted, and not one
// that the cache had before. It reports whether another client has taken our finalizer off and
// no event has said so yet.
func (m *memories[T]) lose(last T, final bool, protects func(client.Object) bool) (released bool) {
	memory := m.of(client.ObjectKeyFromObject(last))
	if reason, _ := pause(last); reason != "" {
		memory.setCleaned() // whoever has paused it and taken the finalizer off wants it so
		return false
	}
	m.mu.Lock() // so that forget does not drop what is being added to
	defer m.mu.Unlock()
	memory.mu.Lock()
	defer memory.mu.Unlock()
	owed, released := memory.fate(last, final, protects(last))
	if owed {
		memory.lost = append(memory.lost, last)
		m.all[client.ObjectKeyFromObject(last)] = memory
	}
	if released {
		memory.release()
	}
	return released
}

// fate says what became of an object that is gone without our having let it go: it is owed a
// clean-up, or another client has taken our finalizer off, or neither.
//
// An object goes at once, or when its last finalizer is taken off. If it goes at once although it
// has our finalizer, the finalizer was lost in a race with the deletion: the clean-up is owed. All
// other ways lead over a client that has taken it off, which is a decision.
func (m *memory[T]) fate(last T, final, protected bool) (owed, released bool) {
	known := m.uid == last.GetUID()
	switch {
	case known && (m.cleaned || m.released):
		return false, false
	case !last.GetDeletionTimestamp().IsZero():
		return false, known && (protected || m.finalized)
	case protected:
		return true, false
	case !known || !m.finalized:
		return false, false
	case m.held != "" && !older(last.GetResourceVersion(), m.held):
		return false, true // it was there, and is not any more
	default:
		return !final, false // we have tried to put it there; only the final state knows whether it was
	}
}

// release notes that another client has taken our finalizer off. The caller has the lock.
func (m *memory[T]) release() {
	m.released, m.finalized, m.held = true, false, ""
}

func (m *memory[T]) hasLost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.lost) > 0
}

func (m *memory[T]) firstLost() (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lost) == 0 {
		var none T
		return none, false
	}
	return m.lost[0], true
}

func (m *memory[T]) dropLost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropped = m.lost[0].GetUID()
	m.lost = m.lost[1:]
}
