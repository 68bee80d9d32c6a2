// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"time"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

const (
	// mostEchoes is how many reconciles in a row may write although nothing that they depend on has
	// changed but by our own writes, each within echoWithin of the one before. It is more than the
	// reconciles of an operator that proceeds in small steps.
	mostEchoes = 60
	echoWithin = time.Second
	// echoesUnwatched is how many of them are not compared with what was read.
	echoesUnwatched = 4
)

// echoes counts the reconciles in a row that may be echoes.
type echoes struct {
	count int
	began time.Time // of the last reconcile that wrote something
	read  string    // the resource version that it began with
	// While echoes are suspected: what the last reconcile has read, which versions we have written,
	// and to which other objects.
	seen   *track.Versions
	ours   map[uint64]bool
	others map[uint64]bool
}

func (e *echoes) reads() *track.Versions {
	if e.count < echoesUnwatched {
		return nil
	}
	return track.NewVersions()
}

// empty reports whether nothing is counted or remembered.
func (e *echoes) empty() bool {
	return e.count == 0 && e.began.IsZero()
}

func (e *echoes) reset() { e.count, e.seen, e.ours, e.others = 0, nil, nil, nil }

// observe counts reconciles that write although nothing has triggered them but the writes of the
// one before, and reports whether there are too many. A requested time, a change of anything that
// was read, and a write to an object that was not written before are reasons to write. Again is
// true if the object was in a hot loop a moment ago.
func (e *echoes) observe(r Reconcile, again bool) bool {
	own := r.Version != "" && (r.Version == r.Began || r.Version == e.read)
	soon := r.Now.Sub(e.began) < echoWithin
	if r.lastWrite() == nil {
		*e = echoes{}
		return false
	}
	e.began, e.read = r.Now, r.Version
	if !own || r.Requested || !soon {
		e.reset()
		return false
	}
	e.count++
	reads, foreign := r.Record.Reads(), false
	if reads != nil && e.seen != nil {
		foreign = reads.Foreign(e.seen, e.ours)
	}
	e.seen = reads
	if progress := e.noteOurs(r); foreign || progress {
		e.count = min(e.count, echoesUnwatched)
	}
	if again {
		return e.count >= echoesUnwatched+sameWrites
	}
	return e.count >= mostEchoes
}

// noteOurs notes the versions that we have written, and reports whether another object was written
// for the first time.
func (e *echoes) noteOurs(r Reconcile) (progress bool) {
	if e.ours == nil {
		e.ours, e.others = make(map[uint64]bool), make(map[uint64]bool)
	}
	e.ours[track.Hash([]byte(r.Written))] = true
	for _, w := range r.Record.Writes() {
		if w.After != nil {
			e.ours[track.Hash([]byte(w.After.Version))] = true
		}
		if id := idOf(w.Object); w.Object != r.Self && !e.others[id] {
			e.others[id], progress = true, true
		}
	}
	return progress
}
