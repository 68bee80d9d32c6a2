// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A hot loop is one of two things. A fight: another client undoes what we have written, and we
// write it again. An echo: each of our writes makes the event of the next.
// docs/design/0008-what-is-a-hot-loop.md says why these, and what is none.
const (
	// sameWrites is how often the same value may be written within loopWindow because another
	// client has undone it: the write that makes it so many is reported.
	sameWrites = 6
	loopWindow = 2 * time.Minute
	// echoes is how many reconciles in a row may write although nothing that they depend on has
	// changed but by our own writes, each within echoWithin of the one before. It is longer than
	// the ways that operators go in small steps.
	echoes     = 60
	echoWithin = time.Second
	// echoesUnwatched is how many of them are not compared with what was read.
	echoesUnwatched = 4

	firstSlow, mostSlow = time.Second, 5 * time.Minute
)

// hot is what is known of the writes of earlier reconciles.
type hot struct {
	targets map[uint64]*target // by the object
	owners  []string           // the field owners that were used besides the name of the engine

	echoes int
	began  time.Time // of the last reconcile that wrote something
	read   string    // the resource version that it began with
	// While echoes are suspected: what the last reconcile has read, which versions we have written,
	// and to which other objects.
	seen   *versions
	ours   map[uint64]bool
	others map[uint64]bool

	level      int
	until      time.Time // the next reconcile waits until then
	calm       time.Time // when it is over, if nothing more happens
	generation int64
	text       string // for the condition
}

// A target is an object that was written.
type target struct {
	at      time.Time // of the last write
	uid     types.UID
	version string // of the last answer
	facts   []fact

	// The type and name, for an object that is in the cache. It is not an object to read into: there
	// may be many targets, and objects are large.
	cached reflect.Type
	key    client.ObjectKey

	// blind counts writes that have changed something of which it is not known whether it is what
	// they sent. The API server is asked before the next one when there are need of them. Each time
	// that this shows no fight, need doubles. Quiet counts the writes in a row that found our last
	// one as it was.
	blind, need, quiet int
}

// A fact is what we have last written to a field.
type fact struct {
	path, value uint64
	at          time.Time
	undone      []time.Time // when the same was written again, because it was undone
}

const (
	mostTargets = 64
	mostFacts   = 64
	mostNeed    = 64
	mostQuiet   = 3
	// keptTargets is how long the version of a target is known.
	keptTargets = longestRest
)

// existence is the path of the fact whether there is an object.
const existence = 0

const (
	there uint64 = iota + 1
	gone
)

// slowed says whether the object has to wait. A change of its spec, its deletion and its pause do
// not.
func (m *memory[T]) slowed(obj T, now time.Time) bool {
	paused, _ := pause(obj)
	return now.Before(m.hot.until) && obj.GetGeneration() == m.hot.generation && obj.GetDeletionTimestamp().IsZero() && paused == ""
}

// cool ends a hot loop that did not come again.
func (h *hot) cool(now time.Time) {
	if h.level > 0 && !now.Before(h.calm) {
		h.level, h.until, h.text = 0, time.Time{}, ""
	}
}

// untilCalm returns when to look again, so that the condition does not tell of a hot loop that is
// over; zero if it tells of none.
func (h *hot) untilCalm(now time.Time) time.Duration {
	if h.text == "" {
		return 0
	}
	return max(h.calm.Sub(now), time.Second)
}

// A loop is a hot loop that was found.
type loop struct {
	write  *write
	paths  []string // that are fought over; none if it is the object itself, or an echo
	fight  bool
	count  int
	within time.Duration
}

// watchHotLoop judges what the reconcile has written, and returns how long the next one has to
// wait.
func (r *run[T]) watchHotLoop(ctx context.Context, failed bool) (slow time.Duration) {
	if r.core == nil {
		return 0
	}
	r.core.letGo()
	h := &r.memory.hot
	h.forget(r.now)
	found := h.fought(r.core, r.now)
	if !failed && !r.core.refused {
		h.accept(r.core.began, r.now)
	}
	if r.echo() && found == nil {
		found = &loop{write: r.lastWrite(), count: h.echoes, within: time.Duration(h.echoes) * echoWithin}
		found.paths = found.write.fields
	}
	if found == nil {
		if h.text != "" && r.read.GetGeneration() != h.generation {
			h.calm = r.now // the spec has changed, and it did not come again
		}
		return 0
	}
	slow = h.slow()
	h.level++
	h.until, h.calm = r.now.Add(slow), r.now.Add(slow*2+loopWindow)
	h.generation = r.read.GetGeneration()
	h.resetEchoes()
	r.tellHotLoop(ctx, found, slow)
	return slow
}

// slow is how long the next hot loop has to wait.
func (h *hot) slow() time.Duration { return min(firstSlow<<min(h.level, 10), mostSlow) }

// window is how far apart writes of the same may be, which are slowed down themselves.
func (h *hot) window() time.Duration { return loopWindow + sameWrites*h.slow() }

// forget drops what is too old.
func (h *hot) forget(now time.Time) {
	window := h.window()
	for id, t := range h.targets {
		t.facts = slices.DeleteFunc(t.facts, func(f fact) bool { return now.Sub(f.at) > window })
		if len(t.facts) == 0 {
			t.facts = nil
		}
		if now.Sub(t.at) > keptTargets {
			delete(h.targets, id)
		}
	}
}

// known returns what is known of an object, nil if nothing is. All its methods for reading allow
// nil.
func (h *hot) known(object journal.Object) *target {
	if h == nil || len(h.targets) == 0 {
		return nil
	}
	return h.targets[idOf(object)]
}

// target returns what is known of an object that was written. Of too many, the one that was written
// longest ago is forgotten.
func (h *hot) target(object journal.Object, now time.Time) *target {
	id := idOf(object)
	t := h.targets[id]
	if t == nil {
		if len(h.targets) >= mostTargets {
			oldest := id
			for other, o := range h.targets {
				if oldest == id || o.at.Before(h.targets[oldest].at) {
					oldest = other
				}
			}
			delete(h.targets, oldest)
		}
		if h.targets == nil {
			h.targets = make(map[uint64]*target)
		}
		t = &target{}
		h.targets[id] = t
	}
	t.at = now
	return t
}

// is reports whether our last write was answered with this version.
func (t *target) is(version string) bool { return t != nil && t.version == version }

// newerThan reports whether a state is older than the answer to our last write.
func (t *target) newerThan(s *snapshot) bool {
	if t == nil || s == nil || s.absent || t.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(s.version, t.version)
	return err == nil && order < 0
}

// suspected reports whether the API server is to be asked before the next write: because nothing
// else shows what that changes, or because it may prove a fight, and the managers of the fields are
// not known.
func (t *target) suspected(before *snapshot) bool {
	if t == nil {
		return false
	}
	if before == nil && t.blind >= max(t.need, 1) {
		return true
	}
	near := slices.ContainsFunc(t.facts, func(f fact) bool { return len(f.undone) >= sameWrites-2 })
	return near && (before == nil || !before.absent && len(before.managers) == 0)
}

// fought judges the writes of a reconcile, and returns a fight over what one of them has written,
// nil if there is none.
func (h *hot) fought(c *core, now time.Time) *loop {
	for _, w := range c.inVain() {
		h.target(w.object, now).found(w.before)
	}
	var found *loop
	writes := c.written()
	for i := range writes {
		w := &writes[i]
		if w.owner != "" && w.owner != c.owner && !slices.Contains(h.owners, w.owner) {
			h.owners = append(h.owners, w.owner)
		}
		if w.verb == "deletecollection" { // whatever it has deleted may be created again
			for _, t := range h.targets {
				t.facts = slices.DeleteFunc(t.facts, func(f fact) bool { return f.path == existence })
			}
			continue
		}
		if !isPartOf(w.subresource) {
			continue
		}
		paths, count := h.target(w.object, now).judge(w, now, h.window())
		if count >= sameWrites && (found == nil || count > found.count) {
			found = &loop{write: w, paths: paths, fight: true, count: count, within: loopWindow}
		}
	}
	return found
}

// judge compares what a write has changed with what we have written before. It returns how often
// the same was written to one field, and to which.
func (t *target) judge(w *write, now time.Time, window time.Duration) (paths []string, count int) {
	t.quiet = 0
	if w.cached != nil {
		t.cached, t.key = w.cached, w.object.Key()
	}
	switch {
	case w.verb == "delete":
		known := w.before != nil && !w.before.absent
		if !known {
			t.blind++
		}
		_, count = t.wrote(existence, gone, known, now, window)
		t.onlyExistence()
		t.uid, t.version = "", ""
		return nil, count
	case w.after == nil:
		return nil, 0
	case w.verb == "create" || w.creates() && w.after.uid != t.uid: // and not one that the cache does not know yet
		_, count = t.wrote(existence, there, true, now, window)
		t.onlyExistence()
	default:
		if t.uid != "" && t.uid != w.after.uid { // another object of the same name
			t.facts = nil
		}
		paths, count = t.judgeFields(w, now, window)
	}
	t.uid, t.version = w.after.uid, w.after.version
	return paths, count
}

func (t *target) judgeFields(w *write, now time.Time, window time.Duration) (paths []string, count int) {
	if w.before == nil || w.before.absent { // a cache that does not know the object
		if t.version != "" {
			t.blind++
		}
		return nil, 0
	}
	ours, suspicious := false, false
	for _, c := range w.changes() {
		path := numberOf([]byte(c.path))
		if !c.differ && !t.has(path) {
			continue
		}
		first, n := t.wrote(path, numberOf(mustJSON(c.value)), c.differ, now, window)
		again := c.differ && (first || n > 1)
		ours, suspicious = ours || c.differ && !again, suspicious || again
		switch {
		case n < max(count, 2):
		case n > count:
			paths, count = []string{c.path}, n
		default:
			paths = append(paths, c.path)
		}
	}
	if w.verified && ours && !suspicious { // without any change, another client has written between the read and the write
		t.disproved()
	}
	return paths, count
}

// found notes that the API server was asked before a write that changed nothing.
func (t *target) found(now *snapshot) {
	if now == nil || t.version != now.version { // another client has written, and not against us
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

// disputes returns the fields of the objects that others have changed back before, as they are when
// the reconcile begins: its steps see the same, or something newer.
func (r *run[T]) disputes(ctx context.Context) map[uint64]factsOf {
	var all map[uint64]factsOf
	for id, t := range r.memory.hot.targets {
		if !slices.ContainsFunc(t.facts, fact.disputed) {
			continue
		}
		var now *snapshot
		switch {
		case id == idOf(r.self()):
			now = snapshotOf(r.read)
		case t.cached != nil:
			obj := newOf(t.cached)
			switch err := r.engine.options.Client.Get(ctx, t.key, obj, sharing...); {
			case err == nil:
				now = snapshotOf(obj)
			case apierrors.IsNotFound(err):
				now = &snapshot{absent: true}
			}
		}
		if now == nil || t.newerThan(now) {
			continue
		}
		if all == nil {
			all = make(map[uint64]factsOf)
		}
		all[id] = now.facts()
	}
	return all
}

// accept drops what was undone when the reconcile began, and what it has not written again although
// nothing has failed: then the value may come and go, for example as a request that another
// controller takes away when it has served it.
func (h *hot) accept(began map[uint64]factsOf, now time.Time) {
	for id, values := range began {
		if t := h.targets[id]; t != nil {
			t.facts = slices.DeleteFunc(t.facts, func(f fact) bool {
				return f.disputed() && f.at.Before(now) && values.of(f.path) != f.value
			})
		}
	}
}

// factsOf are the values of the fields of an object, as facts have them.
type factsOf map[uint64]uint64

// nothing is the value of a field that is not there.
var nothing = numberOf(mustJSON(nil))

func (f factsOf) of(path uint64) uint64 {
	if value, ok := f[path]; ok {
		return value
	}
	return nothing
}

func (s *snapshot) facts() factsOf {
	values := factsOf{existence: there}
	if s.absent || s.terminating {
		values[existence] = gone
	}
	for _, sub := range []string{"", "status"} {
		for path, value := range s.leaves(sub) {
			values[numberOf([]byte(path))] = numberOf(mustJSON(value))
		}
	}
	return values
}

// versions are the versions of objects that a reconcile has read. A nil one notes nothing.
type versions struct{ of map[types.UID]uint64 }

func (v *versions) note(obj client.Object) {
	if v != nil && obj.GetUID() != "" {
		v.of[obj.GetUID()] = numberOf([]byte(obj.GetResourceVersion()))
	}
}

func (v *versions) noteAll(list client.ObjectList) {
	if v == nil {
		return
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { //nolint:errcheck // a list without items has none to note
		if obj, ok := item.(client.Object); ok {
			v.note(obj)
		}
		return nil
	})
}

// foreign reports whether something was changed since that is not ours.
func (v *versions) foreign(before *versions, ours map[uint64]bool) bool {
	for uid, version := range v.of {
		if before.of[uid] != version && !ours[version] {
			return true
		}
	}
	for uid := range before.of {
		if _, ok := v.of[uid]; !ok {
			return true
		}
	}
	return false
}

// watchReads has the reads of the reconcile noted, if it may be an echo.
func (h *hot) watchReads() *versions {
	if h.echoes < echoesUnwatched {
		return nil
	}
	return &versions{make(map[types.UID]uint64)}
}

func (h *hot) resetEchoes() { h.echoes, h.seen, h.ours, h.others = 0, nil, nil, nil }

// echo counts reconciles that have written something although nothing has asked for that but the
// writes of the one before. A time that was asked for, a change of anything that was read, and a
// write to an object that had no turn yet are reasons to write.
func (r *run[T]) echo() bool {
	h, m := &r.memory.hot, r.memory
	version := r.read.GetResourceVersion()
	own := version != "" && (version == r.beganWith || version == h.read)
	asked := !m.next.IsZero() && !r.now.Before(m.next)
	soon := r.now.Sub(h.began) < echoWithin
	h.began, h.read = r.now, version
	if r.lastWrite() == nil || !own || asked || !soon {
		h.resetEchoes()
		return false
	}
	h.echoes++
	reads, foreign := r.core.reads, false
	if reads != nil && h.seen != nil {
		foreign = reads.foreign(h.seen, h.ours)
	}
	h.seen = reads
	if progress := r.noteOurs(); foreign || progress {
		h.echoes = min(h.echoes, echoesUnwatched)
	}
	if h.level > 0 { // it was one a moment ago
		return h.echoes >= echoesUnwatched+sameWrites
	}
	return h.echoes >= echoes
}

// noteOurs remembers the versions that we have written, and reports whether another object was
// written for the first time.
func (r *run[T]) noteOurs() (progress bool) {
	h := &r.memory.hot
	if h.ours == nil {
		h.ours, h.others = make(map[uint64]bool), make(map[uint64]bool)
	}
	h.ours[numberOf([]byte(r.memory.written))] = true
	self := r.self()
	writes := r.core.written()
	for i := range writes {
		w := &writes[i]
		if w.after != nil {
			h.ours[numberOf([]byte(w.after.version))] = true
		}
		if id := idOf(w.object); w.object != self && !h.others[id] {
			h.others[id], progress = true, true
		}
	}
	return progress
}

func (r *run[T]) self() journal.Object { return journal.ObjectOf(r.engine.kind, r.key()) }

// lastWrite returns the last write to the object, or else the last to any other, nil if there was
// none.
func (r *run[T]) lastWrite() *write {
	var last *write
	self, writes := r.self(), r.core.written()
	for i := range writes {
		if last == nil || last.object != self || writes[i].object == self {
			last = &writes[i]
		}
	}
	return last
}

// tellHotLoop names it: in the journal, in an event when it begins, and in the condition of the
// next reconcile.
func (r *run[T]) tellHotLoop(ctx context.Context, found *loop, slow time.Duration) {
	h := &r.memory.hot
	var managers []string
	if found.fight {
		managers = found.managers(append([]string{r.engine.options.Name}, h.owners...))
	}
	text := found.text(managers, r.engine.options.Name)
	first := h.text == ""
	h.text = text
	if r.journal != nil {
		r.journal.Note(ctx, journal.HotLoop{Reconciles: found.count, Within: found.within, Fields: found.paths, Managers: managers, Slowed: slow})
	}
	r.logger.Info("Slowing down a hot loop", "fields", found.paths, "object", found.write.object.String(), "managers", managers, "slowed", slow)
	if first && r.engine.options.Recorder != nil {
		r.engine.options.Recorder.Eventf(r.req.Object, nil, corev1.EventTypeWarning, ReasonHotLoop, "Reconcile", "%s", text)
	}
}

// text says what is written again and again, by whom else, and the way out.
func (l *loop) text(managers []string, name string) string {
	w := l.write
	what := orElse(strings.Join(l.paths, ", "), w.verb) + " of " + w.object.String()
	deleted := l.fight && len(l.paths) == 0 && w.verb == "delete"
	switch {
	case !l.fight:
		return what + " is written again and again: a step gives it another value each time"
	case len(l.paths) == 0 && !deleted:
		return w.object.String() + " is created again and again: another client deletes it, find out which one and stop one of the two"
	case deleted && len(managers) == 0:
		return w.object.String() + " is deleted again and again: another client creates it, find out which one and stop one of the two"
	case deleted:
		return w.object.String() + " is deleted again and again: field manager " + quoted(managers) + " creates it, stop one of the two"
	case slices.Equal(managers, []string{name}):
		return what + " is written again and again: field manager " + quoted(managers) +
			" writes it too, which is the name of this controller: look for a second copy of the operator and stop one of the two"
	case len(managers) > 0:
		return what + " is written again and again: field manager " + quoted(managers) + " writes it too, stop one of the two"
	default:
		return what + " is written again and again: another client undoes it, which the managed fields do not name: find out which one and stop one of the two"
	}
}
