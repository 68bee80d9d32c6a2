// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A table has a row for each object. It exists while there are viewers.
type table struct {
	mu      sync.Mutex
	rows    map[journal.Object]*entry
	results map[journal.Object]lastRun // of objects that are not ready
	follows map[schema.GroupKind]*follow
	ready   map[schema.GroupKind]bool // kinds with a condition Ready
	version uint64                    // grows with each change
	signal  chan struct{}             // closed at the next change
}

// An entry is a row with the object that it was made of, which belongs to the cache.
type entry struct {
	row
	from client.Object
	kind schema.GroupVersionKind
}

// A follow is a kind that the table gets its objects of.
type follow struct {
	stop   func()
	synced func() bool
	err    error
	failed time.Time // when err came
}

func newTable() *table {
	return &table{
		rows: map[journal.Object]*entry{}, results: map[journal.Object]lastRun{},
		follows: map[schema.GroupKind]*follow{}, ready: map[schema.GroupKind]bool{}, signal: make(chan struct{}),
	}
}

// retryFollow is when a kind that could not be followed is tried again.
const retryFollow = 30 * time.Second

// follow begins to get the objects of a kind, unless it does already.
func (t *table) follow(objects Objects, kind schema.GroupKind) {
	t.mu.Lock()
	f, following := t.follows[kind]
	following = following && (f.err == nil || time.Since(f.failed) < retryFollow)
	if !following {
		t.follows[kind] = &follow{stop: func() {}, synced: func() bool { return false }}
	}
	t.mu.Unlock()
	if following {
		return
	}
	stop, synced, err := objects.Follow(kind, func(gvk schema.GroupVersionKind) toolscache.ResourceEventHandler {
		return toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { t.set(obj, gvk) },
			UpdateFunc: func(_, obj any) { t.set(obj, gvk) },
			DeleteFunc: func(obj any) { t.remove(obj, gvk) },
		}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.follows[kind] = &follow{stop: func() {}, synced: func() bool { return true }, err: err, failed: time.Now()}
		return
	}
	t.follows[kind] = &follow{stop: stop, synced: synced}
}

// close ends what follow has begun.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.follows {
		f.stop()
	}
}

// loading reports whether objects are missing that are about to come, and errs which kinds can't be
// followed.
func (t *table) loading() (loading bool, errs []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, f := range t.follows {
		loading = loading || !f.synced()
		if f.err != nil {
			errs = append(errs, kind.String()+": "+f.err.Error())
		}
	}
	slices.Sort(errs)
	return loading, errs
}

func (t *table) set(value any, kind schema.GroupVersionKind) {
	obj, ok := value.(client.Object)
	if !ok {
		return
	}
	key := journal.ObjectOf(kind.GroupKind(), client.ObjectKeyFromObject(obj))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(key, obj, kind)
}

func (t *table) put(key journal.Object, obj client.Object, kind schema.GroupVersionKind) {
	before := t.rows[key]
	e := &entry{row: rowOf(obj, kind, t.results[key], t.ready[kind.GroupKind()]), from: obj, kind: kind}
	t.rows[key] = e
	if before == nil || before.row != e.row {
		t.bump()
	}
	if e.hasReady && !t.ready[kind.GroupKind()] { // the first one
		t.ready[kind.GroupKind()] = true
		for other, o := range t.rows {
			if o.kind == kind && !o.hasReady {
				t.put(other, o.from, kind)
			}
		}
	}
}

func (t *table) remove(value any, kind schema.GroupVersionKind) {
	if final, ok := value.(toolscache.DeletedFinalStateUnknown); ok {
		value = final.Obj
	}
	obj, ok := value.(client.Object)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, journal.ObjectOf(kind.GroupKind(), client.ObjectKeyFromObject(obj)))
	t.bump()
}

// finished notes how a reconcile has ended.
func (t *table) finished(key journal.Object, last lastRun) {
	switch last.result {
	case journal.ResultConverged, journal.ResultStale:
		return // nothing was evaluated
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if ofResult[last.result] == "" {
		delete(t.results, key)
	} else {
		t.results[key] = last
	}
	if e := t.rows[key]; e != nil {
		t.put(key, e.from, e.kind)
	}
}

// changed wakes viewers: something has happened, in the table or beside it.
func (t *table) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bump()
}

func (t *table) bump() {
	t.version++
	close(t.signal)
	t.signal = make(chan struct{})
}

// next returns a channel that is closed at the next change.
func (t *table) next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.signal
}

// A filter says which rows to show. Its zero value is all.
type filter struct {
	Text, Kind, Namespace, State, Group string
}

// matches reports whether a row is to be shown. Each word of the text must be in it.
func (f *filter) matches(r *row, wanted []string) bool {
	if f.Kind != "" && r.object.Kind != f.Kind || f.Namespace != "" && r.object.Namespace != f.Namespace ||
		f.State != "" && string(r.state) != f.State || f.Group != "" && r.group != f.Group && r.alike != f.Group {
		return false
	}
	for _, word := range wanted {
		if !strings.Contains(r.text, word) {
			return false
		}
	}
	return true
}

// A selection is what a filter leaves of the table.
type selection struct {
	Groups            []group
	Total, Matching   int
	Kinds, Namespaces []string
	States            map[State]int
}

// choose returns the groups of the rows that match, at most so many rows of each.
func (t *table) choose(f filter, most int) selection {
	wanted := strings.Fields(strings.ToLower(f.Text))
	s := selection{States: map[State]int{}}
	kinds, namespaces := map[string]bool{}, map[string]bool{}
	var rows []*row // which never change: another one takes the place of each
	withoutState := f
	withoutState.State = ""
	t.mu.Lock()
	for _, e := range t.rows {
		r := &e.row
		s.Total++
		kinds[r.object.Kind], namespaces[r.object.Namespace] = true, true
		if !withoutState.matches(r, wanted) {
			continue
		}
		s.States[r.state]++
		if !f.matches(r, wanted) {
			continue
		}
		rows = append(rows, r)
	}
	t.mu.Unlock()
	s.Matching, s.Groups = len(rows), grouped(rows, most, f.Group == "")
	s.Kinds, s.Namespaces = sortedKeys(kinds), sortedKeys(namespaces)
	return s
}

func sortedKeys(set map[string]bool) []string {
	var all []string
	for key := range set {
		if key != "" {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}

// A tally has the objects of a kind by state.
type tally struct {
	Kind   schema.GroupKind
	States map[State]int
	Total  int
}

// tallies counts the objects of each kind.
func (t *table) tallies() []tally {
	byKind := map[schema.GroupKind]*tally{}
	t.mu.Lock()
	for kind := range t.follows {
		byKind[kind] = &tally{Kind: kind, States: map[State]int{}}
	}
	for key, e := range t.rows {
		k := byKind[schema.GroupKind{Group: key.Group, Kind: key.Kind}]
		k.States[e.state]++
		k.Total++
	}
	t.mu.Unlock()
	var all []tally
	for _, k := range byKind {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b tally) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return all
}
