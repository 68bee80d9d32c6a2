package journal

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
)

// RingOptions bound a [Ring]. A zero field has a default.
type RingOptions struct {
	// Entries is how many are kept for an object by each controller: 256 by default. An entry takes some 200 bytes.
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
	count   uint64     // of the entries that were kept
}

var _ Observer = (*Ring)(nil)

type ringKey struct {
	controller string
	object     Object
}

// A history is what one controller did with one object.
type history struct {
	key     ringKey
	entries []kept
}

// A kept entry knows which it was, over all histories: their times may be the same.
type kept struct {
	Entry
	number uint64
}

func (k kept) isTriggered() bool {
	_, ok := k.Event.(Triggered)
	return ok
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
	r.count++
	h.add(kept{entry, r.count}, r.options.Entries)
}

// add keeps the entry. What came into the queue is kept until the reconcile begins that names it as its cause, and of reconciles in a row
// that found nothing to do only one, with the causes of all.
func (h *history) add(entry kept, limit int) {
	switch event := entry.Event.(type) {
	case Started:
		h.entries = slices.DeleteFunc(h.entries, kept.isTriggered)
	case Finished:
		if event.Result == Converged {
			h.mergeConverged()
		}
	}
	if len(h.entries) >= 2*limit {
		h.entries = append(h.entries[:0], h.entries[len(h.entries)-limit:]...)
	}
	h.entries = append(h.entries, entry)
}

// mergeConverged takes the reconcile before the one that is about to end, which has found nothing to do, into this, if that found nothing either.
// What came into the queue in the meantime stays.
func (h *history) mergeConverged() {
	n := len(h.entries)
	for n > 0 && h.entries[n-1].isTriggered() {
		n--
	}
	if n < 3 {
		return
	}
	this, started := h.entries[n-1].Event.(Started)
	before, _ := h.entries[n-2].Event.(Finished) // the zero result is not Converged
	first, startedBefore := h.entries[n-3].Event.(Started)
	if !started || !startedBefore || before.Result != Converged {
		return
	}
	this.Causes = slices.Clone(this.Causes) // observers have the old ones
	for _, c := range first.Causes {
		this.Causes = MergeCauses(this.Causes, c)
	}
	h.entries[n-1].Event = this
	h.entries = slices.Delete(h.entries, n-3, n-1)
}

// Entries returns what is kept about an object, over all controllers, in the order in which it happened.
func (r *Ring) Entries(object Object) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []kept
	for element := r.recent.Front(); element != nil; element = element.Next() {
		h := element.Value.(*history) //nolint:errcheck // nothing else is in the list
		if h.key.object == object {
			all = append(all, h.entries[max(0, len(h.entries)-r.options.Entries):]...)
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(a.number, b.number) })
	entries := make([]Entry, len(all))
	for i := range all {
		entries[i] = all[i].Entry
	}
	return entries
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
