package journal

import (
	"container/list"
	"context"
	"slices"
	"sync"
)

// RingOptions bound a [Ring]. A zero field has a default.
type RingOptions struct {
	// Entries is how many are kept for an object: 256 by default. An entry takes some 200 bytes.
	Entries int
	// Objects is for how many objects: 1,000 by default. The one that nothing happened to for the longest time is forgotten first.
	Objects int
}

// A Ring is an [Observer] that keeps the latest entries of each object in memory.
type Ring struct {
	options RingOptions

	mu      sync.Mutex // for all below
	objects map[ringKey]*list.Element
	recent  *list.List // of *history, the latest in front
}

var _ Observer = (*Ring)(nil)

type ringKey struct {
	controller string
	object     Object
}

type history struct {
	key     ringKey
	entries []Entry
}

// NewRing returns an empty ring.
func NewRing(options RingOptions) *Ring {
	if options.Entries <= 0 {
		options.Entries = 256
	}
	if options.Objects <= 0 {
		options.Objects = 1000
	}
	return &Ring{options: options, objects: make(map[ringKey]*list.Element), recent: list.New()}
}

// Observe keeps the entry. Reads from the cache are not kept: they are many and say little.
func (r *Ring) Observe(_ context.Context, entry Entry) {
	if read, ok := entry.Event.(Read); ok && !read.Live && read.Err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := ringKey{entry.Controller, entry.Object}
	element, ok := r.objects[key]
	if !ok {
		element = r.recent.PushFront(&history{key: key})
		r.objects[key] = element
		if r.recent.Len() > r.options.Objects {
			oldest := r.recent.Remove(r.recent.Back()).(*history) //nolint:errcheck // nothing else is in the list
			delete(r.objects, oldest.key)
		}
	} else {
		r.recent.MoveToFront(element)
	}
	h := element.Value.(*history) //nolint:errcheck // nothing else is in the list
	h.add(entry, r.options.Entries)
}

// add keeps the entry. What came into the queue is kept until the reconcile begins that names it as its cause, and of reconciles in a row
// that found nothing to do only one, with the causes of all.
func (h *history) add(entry Entry, limit int) {
	switch event := entry.Event.(type) {
	case Started:
		h.entries = slices.DeleteFunc(h.entries, func(e Entry) bool {
			_, triggered := e.Event.(Triggered)
			return triggered
		})
	case Finished:
		if event.Result == Converged && h.mergeConverged(entry) {
			return
		}
	}
	if len(h.entries) >= 2*limit {
		h.entries = append(h.entries[:0], h.entries[len(h.entries)-limit:]...)
	}
	h.entries = append(h.entries, entry)
}

// mergeConverged takes a reconcile that found nothing to do into the one before it, if that found nothing either, and says whether it did.
func (h *history) mergeConverged(finished Entry) bool {
	n := len(h.entries)
	if n < 3 {
		return false
	}
	this, started := h.entries[n-1].Event.(Started)
	before, finishedBefore := h.entries[n-2].Event.(Finished)
	first, startedBefore := h.entries[n-3].Event.(Started)
	if !started || !finishedBefore || !startedBefore || before.Result != Converged {
		return false
	}
	this.Causes = slices.Clone(this.Causes)
	for _, c := range first.Causes {
		this.Causes = MergeCauses(this.Causes, c)
	}
	h.entries[n-3], h.entries[n-2] = h.entries[n-1], finished
	h.entries[n-3].Event = this
	h.entries = h.entries[:n-1]
	return true
}

// Entries returns what is kept about an object, over all controllers, in the order in which it happened.
func (r *Ring) Entries(object Object) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Entry
	for element := r.recent.Front(); element != nil; element = element.Next() {
		h := element.Value.(*history) //nolint:errcheck // nothing else is in the list
		if h.key.object == object {
			all = append(all, h.entries[max(0, len(h.entries)-r.options.Entries):]...)
		}
	}
	return all
}

// Objects returns the objects that something is kept about, the latest first.
func (r *Ring) Objects() []Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Object
	seen := make(map[Object]bool)
	for element := r.recent.Front(); element != nil; element = element.Next() {
		object := element.Value.(*history).key.object //nolint:errcheck // nothing else is in the list
		if !seen[object] {
			seen[object] = true
			all = append(all, object)
		}
	}
	return all
}
