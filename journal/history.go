// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"container/list"
	"reflect"
	"slices"
	"time"
)

// A history is the entries of one controller about one object.
type history struct {
	key      ringKey
	element  *list.Element // of the list of its standing
	packed   []segment     // the older entries of an object that is well
	segments segments      // in packed
	entries  []kept
	texts    texts
	content  int    // the bytes of the events that entries point to, without texts
	latest   uint64 // the number of the latest entry, also if it was dropped

	standing standing
	settled  standing  // the standing while it is not running
	hot      time.Time // when the object stops being slowed down
	cut      bool      // whether the present reconcile ended before its last step
}

// A kept entry is an [Entry] without what its history has.
type kept struct {
	when   time.Time
	run    *Run
	event  Event
	number uint64 // over all histories: their times may be the same
	bytes  int    // of event
}

func (k kept) isTriggered() bool {
	_, ok := k.event.(Triggered)
	return ok
}

func (k kept) isStarted() bool {
	_, ok := k.event.(Started)
	return ok
}

// Sizes, measured with Go 1.26 on 64 bits and rounded up.
const (
	historyBytes = 768 // with its places in the list and the map
	runBytes     = 272 // a Run with an ID and a UID
)

var keptBytes = int(reflect.TypeFor[kept]().Size())

func newHistory(key ringKey) *history { return &history{key: key} }

// size returns the estimated bytes of the history.
func (h *history) size() int {
	n := historyBytes + len(h.key.object.Namespace) + len(h.key.object.Name) + cap(h.entries)*keptBytes + h.content + h.texts.bytes
	return n + cap(h.packed)*segmentBytes + h.segments.bytes
}

// count returns how many entries there are.
func (h *history) count() int { return h.segments.entries + len(h.entries) }

// all returns the entries, which must not be changed.
func (h *history) all() []kept {
	if len(h.packed) == 0 {
		return h.entries
	}
	all := make([]kept, 0, h.count())
	for _, s := range h.packed {
		all = append(all, s.unpack(h.key)...)
	}
	return append(all, h.entries...)
}

// settle encodes the entries of an object that is well, when a reconcile of it has ended. A
// reconcile that had nothing to do stays as it is, to be merged with the next one, and so do
// entries among which there is a Triggered, which the next reconcile removes.
func (h *history) settle(end Finished) {
	if h.standing != well {
		return
	}
	n := len(h.entries)
	if end.Result == ResultConverged {
		n--
		for n > 0 && !h.entries[n].isStarted() {
			n--
		}
	}
	if n == 0 || slices.ContainsFunc(h.entries[:n], kept.isTriggered) {
		return
	}
	s, ok := pack(h.key, h.entries[:n])
	if !ok {
		return
	}
	h.packed = append(h.packed, s)
	h.segments.count(s, 1)
	h.delete(0, n)
	h.grow(0)
	h.texts.clip()
}

// dropSegment deletes the entries of the oldest segment.
func (h *history) dropSegment() {
	h.segments.count(h.packed[0], -1)
	h.packed = slices.Delete(h.packed, 0, 1)
}

// segments counts what is in them.
type segments struct{ entries, bytes int }

func (c *segments) count(s segment, sign int) {
	c.entries += sign * s.entries
	c.bytes += sign * sized(len(s.data))
}

// add appends an entry. It removes a Triggered when the reconcile begins that has it as its cause,
// and merges consecutive reconciles that had nothing to do into one, with the causes of all.
func (h *history) add(entry kept, limit int) {
	switch event := entry.event.(type) {
	case Started:
		h.deleteFunc(kept.isTriggered)
	case Finished:
		if event.Result == ResultConverged {
			h.mergeConverged()
		}
	}
	h.stand(entry)
	for len(h.packed) > 0 && h.count()-h.packed[0].entries >= limit {
		h.dropSegment()
	}
	if most := limit + limit/8; len(h.entries) > most {
		h.delete(0, len(h.entries)-limit)
	}
	if len(h.entries) == cap(h.entries) { // append would double it
		h.grow(8 + len(h.entries)/4)
	}
	h.latest = entry.number
	h.entries = append(h.entries, h.take(entry))
	if end, ok := entry.event.(Finished); ok {
		h.settle(end)
	}
}

// stand updates the standing after an entry.
func (h *history) stand(entry kept) {
	switch event := entry.event.(type) {
	case Started:
		h.standing, h.cut = running, false
	case StepSkipped:
		h.cut = h.cut || event.After != ""
	case HotLoop:
		h.hot = entry.when.Add(event.Slowed)
	case Finished:
		switch event.Result {
		case ResultFailed, ResultStalled, ResultWaiting, ResultPaused:
			h.settled = stuck
		case ResultStale: // nothing was evaluated
		case ResultGone, ResultDeleted: // another object of this name starts anew
			h.settled, h.hot = well, time.Time{}
		default:
			h.settled = well
			if h.cut || entry.when.Before(h.hot) {
				h.settled = stuck
			}
		}
		h.standing = h.settled
	}
}

// take counts the bytes of an entry, and makes it share its texts with the others.
func (h *history) take(entry kept) kept {
	entry.event = withTexts(entry.event, h.texts.keep)
	entry.bytes = bytesOf(entry.event)
	h.content += entry.bytes
	return entry
}

// release uncounts an entry that is removed.
func (h *history) release(entry kept) {
	h.content -= entry.bytes
	withTexts(entry.event, h.texts.release)
}

func (h *history) delete(from, to int) {
	for _, entry := range h.entries[from:to] {
		h.release(entry)
	}
	h.entries = slices.Delete(h.entries, from, to)
}

func (h *history) deleteFunc(del func(kept) bool) {
	h.entries = slices.DeleteFunc(h.entries, func(entry kept) bool {
		if !del(entry) {
			return false
		}
		h.release(entry)
		return true
	})
}

// grow sets the capacity of entries to that many more.
func (h *history) grow(more int) {
	entries := make([]kept, len(h.entries), len(h.entries)+more)
	copy(entries, h.entries)
	h.entries = entries
}

// shorten deletes the oldest entries so that the rest takes at most so many bytes, and the rest of
// a reconcile of which entries were deleted.
func (h *history) shorten(bytes int) {
	for len(h.packed) > 0 && h.size() > bytes {
		h.dropSegment()
	}
	n := 0
	for size := h.size() - (cap(h.entries)-len(h.entries))*keptBytes; n < len(h.entries) && size > bytes; n++ {
		before := h.content + h.texts.bytes
		h.release(h.entries[n])
		size -= keptBytes + before - h.content - h.texts.bytes
	}
	for i, entry := range h.entries[n:] {
		if _, ok := entry.event.(Started); ok {
			for _, entry := range h.entries[n : n+i] {
				h.release(entry)
			}
			n += i
			break
		}
	}
	h.entries = h.entries[n:]
	h.grow(0)
	h.texts.clip()
}

// mergeConverged merges the reconcile that is about to end, and has found nothing to do, with the
// one before, if that has found nothing either. Triggered entries since then stay.
func (h *history) mergeConverged() {
	n := len(h.entries)
	for n > 0 && h.entries[n-1].isTriggered() {
		n--
	}
	if n < 3 {
		return
	}
	this, started := h.entries[n-1].event.(Started)
	before, _ := h.entries[n-2].event.(Finished) // the zero result is not Converged
	first, startedBefore := h.entries[n-3].event.(Started)
	if !started || !startedBefore || before.Result != ResultConverged {
		return
	}
	merged := h.entries[n-1]
	this.Causes = slices.Clone(this.Causes) // callers of Entries have the old slice
	for _, c := range first.Causes {
		this.Causes = MergeCauses(this.Causes, c)
	}
	merged.event = this
	merged = h.take(merged)
	h.release(h.entries[n-1])
	h.entries[n-1] = merged
	h.delete(n-3, n-1)
}

// bytesOf returns the bytes of an event without its texts.
func bytesOf(event Event) int {
	n := sized(int(reflect.TypeOf(event).Size()))
	switch e := event.(type) {
	case Started:
		n += runBytes + sized(cap(e.Causes)*int(reflect.TypeFor[Cause]().Size()))
	case StepEnded:
		n += e.Outcome.bytes()
	case ActionEnded:
		n += e.Outcome.bytes()
	case Finished:
		n += e.Outcome.bytes()
	case ActionBlocked:
		n += sized(len(e.By) * stringBytes)
	case Read:
		n += errorBytes(e.Err)
	case Called:
		n += errorBytes(e.Err)
	case Wrote:
		n += errorBytes(e.Err) + sized(len(e.Fields)*stringBytes)
	case Changed:
		n += e.bytes()
	case Kept:
		n += sized(cap(e.Children) * childBytes)
	case HotLoop:
		n += sized(len(e.Fields)*stringBytes) + sized(len(e.Managers)*stringBytes)
	}
	return n
}

const stringBytes = 16

func (o Outcome) bytes() int {
	return errorBytes(o.Err) + sized(len(o.Waits)*int(reflect.TypeFor[Wait]().Size()))
}

// sized returns roughly what the allocator reserves for that many bytes: its size classes are at
// most an eighth apart.
func sized(n int) int {
	if n == 0 {
		return 0
	}
	return n + n/8 + 8
}
