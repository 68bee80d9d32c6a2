// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
)

// RingOptions bound a [Ring]. A field that is zero or negative has a default.
type RingOptions struct {
	// Entries is the number of entries for each object and controller: 256 by default.
	Entries int
	// Objects is the number of objects: 1,000 by default, besides those that are being reconciled.
	Objects int
	// Bytes is the memory for all of them together: 16 MiB by default, and 64 KiB at least. The
	// ring estimates its size, rather too high than too low. If it is not enough, the objects with
	// the most entries lose their oldest ones first.
	Bytes int
}

// The defaults and limits of the options.
const (
	defaultEntries = 256
	defaultObjects = 1000
	defaultBytes   = 16 << 20
	leastBytes     = 64 << 10
	// recovered is the part of the objects that stay although their last reconcile was done, and
	// others wait or fail: a tenth.
	recovered = 10
	// leastShare is the fewest bytes for which an object is kept: two or three reconciles of a few
	// steps.
	leastShare = 4 << 10
)

// A Ring is an [Observer] that keeps the latest entries of each object in memory.
//
// When there are too many objects, it drops some:
//
//   - first those whose last reconcile was done, but for a tenth, so that what has just recovered can
//     be looked at,
//   - then those that wait, fail, are paused, were ended before the last step, or are slowed down,
//   - last those that are being reconciled,
//   - among equals the one without events for the longest time.
//
// Errors are kept as texts, so that they do not keep alive what they point to: errors.Is and
// errors.As find nothing in those that [Ring.Entries] returns. Texts of more than 4 KiB are cut.
type Ring struct {
	options RingOptions

	mu      sync.Mutex // for all below
	objects map[ringKey]*history
	recent  [standings]*list.List // of *history, for each standing, the latest in front
	bytes   int                   // the sizes of all histories
	count   uint64                // of the entries that were kept
}

var _ Observer = (*Ring)(nil)

type ringKey struct {
	controller string
	object     Object
}

// A standing is how much an object is worth keeping.
type standing int

const (
	well standing = iota
	stuck
	running
	standings
)

// NewRing returns an empty ring.
func NewRing(options RingOptions) *Ring {
	if options.Entries <= 0 {
		options.Entries = defaultEntries
	}
	if options.Objects <= 0 {
		options.Objects = defaultObjects
	}
	if options.Bytes <= 0 {
		options.Bytes = defaultBytes
	}
	options.Bytes = max(options.Bytes, leastBytes)
	r := &Ring{options: options, objects: make(map[ringKey]*history)}
	for s := range r.recent {
		r.recent[s] = list.New()
	}
	return r
}

// Observe keeps the entry, unless it is a successful read from the cache or the beginning of a
// workflow: those are many and say little.
func (r *Ring) Observe(_ context.Context, entry Entry) {
	if read, ok := entry.Event.(Read); ok && !read.Live && read.Err == nil {
		return
	}
	if _, ok := entry.Event.(WorkflowBegan); ok {
		return
	}
	event := withoutErrors(entry.Event) // methods of errors must not be called under the lock
	r.mu.Lock()
	defer r.mu.Unlock()
	key := ringKey{entry.Controller, entry.Object}
	h, ok := r.objects[key]
	if !ok {
		h = newHistory(key)
		h.element = r.recent[h.standing].PushFront(h)
		r.objects[key] = h
	} else {
		r.bytes -= h.size()
	}
	r.count++
	before := h.standing
	h.add(kept{when: entry.Time, run: entry.Run, event: event, number: r.count}, r.options.Entries)
	r.bytes += h.size()
	if h.standing == before {
		r.recent[before].MoveToFront(h.element)
	} else {
		r.recent[before].Remove(h.element)
		h.element = r.recent[h.standing].PushFront(h)
	}
	r.bound(h)
}

// bound enforces the options after h has grown.
func (r *Ring) bound(h *history) {
	for r.recent[well].Len()+r.recent[stuck].Len() > r.options.Objects {
		r.drop(r.leastWorth())
	}
	for r.recent[running].Len() > r.options.Objects { // some have never ended: there are fewer workers
		r.drop(last(r.recent[running]))
	}
	for r.bytes > r.options.Bytes {
		share := r.options.Bytes / len(r.objects)
		if share < leastShare && len(r.objects) > 1 {
			r.drop(r.leastWorth())
			continue
		}
		long := r.longerThan(share, h)
		r.bytes -= long.size()
		long.shorten(share - share/4)
		r.bytes += long.size()
		if long.count() == 0 {
			r.drop(long)
		}
	}
}

// leastWorth returns the history to drop first.
func (r *Ring) leastWorth() *history {
	if r.recent[well].Len() <= r.options.Objects/recovered && r.recent[stuck].Len() > 0 {
		return last(r.recent[stuck])
	}
	for _, recent := range r.recent {
		if recent.Len() > 0 {
			return last(recent)
		}
	}
	return nil // there are none
}

// longerThan returns a history that takes more than its share, first if it does. There is one when
// all together take too much.
func (r *Ring) longerThan(share int, first *history) *history {
	if r.objects[first.key] == first && first.size() > share {
		return first
	}
	for _, recent := range r.recent {
		for element := recent.Back(); element != nil; element = element.Prev() {
			if h := historyIn(element); h.size() > share {
				return h
			}
		}
	}
	return r.leastWorth()
}

func (r *Ring) drop(h *history) {
	r.bytes -= h.size()
	r.recent[h.standing].Remove(h.element)
	delete(r.objects, h.key)
}

func last(recent *list.List) *history { return historyIn(recent.Back()) }

func historyIn(element *list.Element) *history {
	return element.Value.(*history) //nolint:errcheck // nothing else is in the lists
}

// Entries returns the entries about an object, of all controllers, in the order in which they
// happened.
func (r *Ring) Entries(object Object) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	type numbered struct {
		Entry
		number uint64
	}
	var all []numbered
	for key, h := range r.objects {
		if key.object != object {
			continue
		}
		entries := h.all()
		for _, k := range entries[max(0, len(entries)-r.options.Entries):] {
			all = append(all, numbered{Entry{Time: k.when, Run: k.run, Controller: key.controller, Object: key.object, Event: k.event}, k.number})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	entries := make([]Entry, len(all))
	for i := range all {
		entries[i] = all[i].Entry
	}
	return entries
}

// Objects returns the objects that have entries, those with the latest entry first.
func (r *Ring) Objects() []Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := make(map[Object]uint64)
	for key, h := range r.objects {
		latest[key.object] = max(latest[key.object], h.latest)
	}
	all := make([]Object, 0, len(latest))
	for object := range latest {
		all = append(all, object)
	}
	slices.SortFunc(all, func(a, b Object) int { return cmp.Compare(latest[b], latest[a]) })
	return all
}
