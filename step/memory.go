// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/cause"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/step/internal/hotloop"
)

// memories are what an engine knows of its objects beyond the cluster. They may be lost at any
// time: they save work, prevent repetition, and help to explain, and nothing else.
type memories[T client.Object] struct {
	mu  sync.Mutex // for all
	all map[types.NamespacedName]*memory[T]
}

// of returns the memory of an object. The queue never runs two reconciles of an object at once, so
// that it needs no lock of its own; the parts that events change have one.
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

// echoOf returns the echo of the last write to an object, nil if none is expected.
func (m *memories[T]) echoOf(key types.NamespacedName) *echo {
	m.mu.Lock()
	defer m.mu.Unlock()
	if memory := m.all[key]; memory != nil {
		return memory.echo.Load()
	}
	return nil
}

// forget drops the memory of an object that is gone, unless a cleanup is pending.
func (m *memories[T]) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if memory := m.all[key]; memory != nil && !memory.protection.hasOrphans() {
		delete(m.all, key)
	}
}

// drop drops the memory of an object that is not ours any more.
func (m *memories[T]) drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// gone notes that an object is gone, and reports whether another client has removed our finalizer
// and no event has reported that yet. See [protection.gone].
func (m *memories[T]) gone(last T, final, protected bool) (released bool) {
	memory := m.of(client.ObjectKeyFromObject(last))
	if reason, _ := pause(last); reason != "" {
		memory.protection.setCleaned() // the client that has paused it and removed the finalizer wants it so
		return false
	}
	m.mu.Lock() // so that forget does not drop what is being added to
	defer m.mu.Unlock()
	pending, released := memory.protection.gone(last, final, protected)
	if pending {
		m.all[client.ObjectKeyFromObject(last)] = memory
	}
	return released
}

// A memory is what is known of one object, by its UID. There is one for each object for as long as
// it exists: what few objects have is behind a pointer.
type memory[T client.Object] struct {
	uid       types.UID
	written   ownWrite
	unchanged converged
	timer     cause.Timer
	gated     string       // why the object was last left alone
	missed    track.Moment // when the object was first seen to be gone although a cleanup is pending
	conflicts int          // in a row
	failed    bool         // the last reconcile has
	echo      atomic.Pointer[echo]
	texts     *textLimit        // nil if there is nothing to limit
	hot       *hotloop.Detector // nil if it knows nothing
	children  track.Expected    // what the last reconcile has written besides the object

	freshness  freshness
	protection protection[T]
}

// startFor begins anew if the object is another one of the same name.
func (m *memory[T]) startFor(obj T) {
	if m.uid == obj.GetUID() {
		return
	}
	m.uid = obj.GetUID()
	m.written, m.unchanged, m.hot, m.texts, m.missed = ownWrite{}, converged{}, nil, nil, 0
	m.gated, m.failed = "", false
	m.echo.Store(nil)
	m.children.Forget()
	m.freshness.reset()
	m.protection.startFor(m.uid)
}

// An ownWrite is our last write to an object.
type ownWrite struct {
	version string // the resource version after it
	at      track.Moment
	final   bool // it removed the last thing that kept the object
}

const (
	// requeueStale is when to reconcile an object again whose cache lacks our last write. The event
	// of that write arrives sooner, most likely.
	requeueStale = time.Second
	// longestStale is how long the cache may be stale before the reconcile runs all the same. The
	// resource version that guards each write prevents harm.
	longestStale = 10 * time.Second
)

// note notes our own write.
func (w *ownWrite) note(version string, now time.Time) {
	w.version, w.at = version, track.MomentOf(now)
}

// isNewerThan reports whether obj is older than our last write, or should be gone because of it.
func (w *ownWrite) isNewerThan(obj client.Object, now time.Time) bool {
	if w.version == "" || w.at.Since(now) > longestStale {
		return false
	}
	if w.final {
		return true
	}
	if w.version == obj.GetResourceVersion() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), w.version)
	return err == nil && order < 0
}

// converged is what the last reconcile of an object has read, if it had nothing to do. See
// [Options.SkipUnchanged].
type converged struct {
	version    string
	generation int64
	inputs     *track.Inputs
	requeue    track.Moment // when it is to be reconciled again; zero for never
	until      track.Moment // how long all this is believed
	// stamp is when, by the feed of the engine, object and inputs were read, or last compared with
	// the cache.
	stamp track.Stamp
}

const (
	// longestUnchanged is how long inputs are believed.
	longestUnchanged = time.Hour
	// longestWritten is the same if the reconcile has written its object or others.
	longestWritten = time.Minute
)

// idle reports whether the next reconcile would see nothing new, as long as nothing changes.
func (c *converged) idle() bool { return c.inputs != nil && !c.inputs.Wrote }

// inTime reports whether what is known is still believed, and no requested time has come.
func (c *converged) inTime(now time.Time) bool {
	return c.inputs != nil && c.until.Until(now) > 0 && (c.requeue.IsZero() || c.requeue.Until(now) > 0)
}

// isOf reports whether the object has not changed since.
func (c *converged) isOf(obj client.Object, now time.Time) bool {
	return c.inTime(now) && c.version == obj.GetResourceVersion()
}

// after returns how long it is until the object is to be reconciled again; zero for never.
func (c *converged) after(now time.Time) time.Duration {
	if c.requeue.IsZero() {
		return 0
	}
	return c.requeue.Until(now)
}
