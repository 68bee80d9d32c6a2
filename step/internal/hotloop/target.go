// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// A target is an object that was written. It is small: an operator keeps several for each of its
// objects.
type target struct {
	id      uint64
	at      time.Time // of the last write
	uid     types.UID
	version string // of the last answer
	facts   []fact

	cached *place // of an object that is in the cache

	// blind counts writes that have changed something, and may not have changed what they sent. The
	// API server is asked before the next write once there are need of them. Each time that this
	// shows no fight, need doubles. Quiet counts the writes in a row that found our last one as it
	// was.
	blind, need, quiet int16
}

// A place is where an object is in the cache. It is not an object to read into: there may be many
// targets, and objects are large.
type place struct {
	of  reflect.Type
	key client.ObjectKey
}

// A fact is what we last wrote to a field.
type fact struct {
	path, value uint64
	at          time.Time
	undone      []time.Time // when the same was written again, because it was undone
}

const (
	mostFacts = 64
	mostNeed  = 64
	mostQuiet = 3
)

// existence is the path of the fact whether there is an object.
const existence = 0

const (
	there uint64 = iota + 1
	gone
)

// is reports whether our last write was answered with this version.
func (t *target) is(version string) bool { return t != nil && t.version == version }

// newerThan reports whether a state is older than the answer to our last write.
func (t *target) newerThan(s *track.Snapshot) bool {
	if t == nil || s == nil || s.Absent || t.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(s.Version, t.version)
	return err == nil && order < 0
}

// suspected reports whether the API server is to be asked before the next write: because nothing
// else shows what it changes, or because it may prove a fight and the managers of the fields are
// not known.
func (t *target) suspected(before *track.Snapshot) bool {
	if t == nil {
		return false
	}
	if before == nil && t.blind >= max(t.need, 1) {
		return true
	}
	near := slices.ContainsFunc(t.facts, func(f fact) bool { return len(f.undone) >= sameWrites-2 })
	return near && (before == nil || !before.Absent && !namesManagers(before))
}

// namesManagers reports whether a state has the managers of its fields. A transform of the cache may have
// dropped them, or all but ours and what differs between those of equal objects: their times.
func namesManagers(s *track.Snapshot) bool {
	return slices.ContainsFunc(s.Managers, func(e metav1.ManagedFieldsEntry) bool { return e.Time != nil })
}

// compare compares what a write has changed with what we have written before. It returns how often
// the same was written to one field, and to which.
func (t *target) compare(w *track.Write, r Reconcile, window time.Duration) (paths []string, count int) {
	t.quiet = 0
	now := r.Now
	if w.Cached != nil {
		t.cached = &place{w.Cached, w.Object.Key()}
	}
	switch {
	case w.Verb == "delete":
		known := w.Before != nil && !w.Before.Absent
		if !known {
			t.blind++
		}
		_, count = t.wrote(existence, gone, known, now, window)
		t.onlyExistence()
		t.uid, t.version = "", ""
		return nil, count
	case w.After == nil:
		return nil, 0
	case w.Verb == "create" || w.Creates() && w.After.UID != t.uid: // and not one that the cache does not know yet
		_, count = t.wrote(existence, there, !t.expired(w.After, now), now, window)
		t.onlyExistence()
	default:
		if t.uid != "" && t.uid != w.After.UID { // another object of the same name
			t.facts = nil
		}
		paths, count = t.compareFields(w, r, window)
	}
	t.uid, t.version = w.After.UID, w.After.Version
	return paths, count
}

// expired reports whether a Job that is created again may have been removed by its own
// ttlSecondsAfterFinished: that is not sooner after its creation.
func (t *target) expired(after *track.Snapshot, now time.Time) bool {
	i := slices.IndexFunc(t.facts, func(f fact) bool { return f.path == existence })
	if i < 0 {
		return false // it is the first, and most objects are created once
	}
	ttl, ok, err := unstructured.NestedInt64(after.Content(), "spec", "ttlSecondsAfterFinished")
	return ok && err == nil && now.Sub(t.facts[i].at) > time.Duration(ttl)*time.Second
}

// served reports whether a change may be a request that is made again: an annotation, or another
// field, that another controller has removed, and that was set at a requested time, not because of
// its removal.
func served(c track.Change, r Reconcile) bool { return c.Added && r.Requested }

func (t *target) compareFields(w *track.Write, r Reconcile, window time.Duration) (paths []string, count int) {
	if w.Before == nil || w.Before.Absent { // a cache that does not know the object
		if t.version != "" {
			t.blind++
		}
		return nil, 0
	}
	ours, suspicious := false, false
	for _, c := range w.Changes() {
		path := track.Hash([]byte(c.Path))
		if !c.Differ && !t.has(path) {
			continue
		}
		first, n := t.wrote(path, hashOf(c.Value), c.Differ && !served(c, r), r.Now, window)
		again := c.Differ && (first || n > 1)
		ours, suspicious = ours || c.Differ && !again, suspicious || again
		switch {
		case n < max(count, 2):
		case n > count:
			paths, count = []string{c.Path}, n
		default:
			paths = append(paths, c.Path)
		}
	}
	if w.Verified && ours && !suspicious { // without any change, another client has written between the read and the write
		t.disproved()
	}
	return paths, count
}

// found notes that the API server was asked before a write that changed nothing.
func (t *target) found(now *track.Snapshot) {
	if now == nil || t.version != now.Version { // another client has written, and not against us
		t.disproved()
		return
	}
	if t.quiet++; t.quiet >= mostQuiet {
		t.blind, t.quiet = 0, 0
	}
}

// disproved notes that there was no fight when the API server was asked.
func (t *target) disproved() { t.blind, t.need = 0, min(2*max(t.need, 1), mostNeed) }

func (t *target) has(path uint64) bool {
	return slices.ContainsFunc(t.facts, func(f fact) bool { return f.path == path })
}

// wrote notes what we have written to a field, and whether that has changed it. It returns whether
// nothing was known of the field, and how often the same was written because it was undone.
func (t *target) wrote(path, value uint64, changed bool, now time.Time, window time.Duration) (first bool, count int) {
	i := slices.IndexFunc(t.facts, func(f fact) bool { return f.path == path })
	if i < 0 {
		if len(t.facts) >= mostFacts {
			t.facts = nil
		}
		t.facts = append(t.facts, fact{path: path, value: value, at: now})
		return true, 1
	}
	f := &t.facts[i]
	if f.value != value {
		*f = fact{path: path, value: value, at: now} // we have changed it ourselves: that it comes back is no fight
		return false, 1
	}
	f.at = now
	if changed {
		f.undone = slices.DeleteFunc(append(f.undone, now), func(at time.Time) bool { return now.Sub(at) > window })
		f.undone = f.undone[max(0, len(f.undone)-2*sameWrites):]
	}
	return false, 1 + len(f.undone)
}

func (t *target) onlyExistence() {
	t.facts = slices.DeleteFunc(t.facts, func(f fact) bool { return f.path != existence })
}

// disputed reports whether a fact was undone.
func (f fact) disputed() bool { return len(f.undone) > 0 }

// hashOf returns a number for a value that comes out of JSON.
func hashOf(v any) uint64 {
	data, _ := json.Marshal(v) //nolint:errchkjson // it comes out of JSON
	return track.Hash(data)
}
