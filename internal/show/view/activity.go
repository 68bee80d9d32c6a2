// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/journal"
)

// minutes is how many minutes the plots of a controller show.
const minutes = 60

// An Activity is a [journal.Observer] that counts what controllers do, in memory that does not grow
// with the number of objects.
type Activity struct {
	table atomic.Pointer[table] // of the viewers, nil without one

	mu          sync.Mutex
	kinds       map[schema.GroupKind]bool
	controllers map[string]*controller
	workflows   map[workflowKey][]outline.Node
}

// NewActivity returns an empty Activity.
func NewActivity() *Activity {
	return &Activity{kinds: map[schema.GroupKind]bool{}, controllers: map[string]*controller{}, workflows: map[workflowKey][]outline.Node{}}
}

// A controller has the counts of one controller.
type controller struct {
	buckets  [minutes]bucket
	slowest  []reconcileTime // the slowest first
	frequent frequencies
	hot      map[journal.Object]loop
	unseen   map[journal.Object]string // by what is read and not watched: what is said of it
}

// A bucket has the counts of one minute.
type bucket struct {
	minute             int64 // since 1970
	reconciles, failed int
}

type reconcileTime struct {
	object journal.Object
	took   time.Duration
	at     time.Time
}

type loop struct {
	what  string
	until time.Time
}

// Limits of what is kept for a controller.
const (
	mostSlowest = 5
	mostHot     = 20
	mostUnseen  = 20
)

// Observe implements [journal.Observer].
func (a *Activity) Observe(_ context.Context, entry journal.Entry) {
	switch event := entry.Event.(type) {
	case journal.Finished:
		a.finished(entry, event)
		if t := a.table.Load(); t != nil {
			t.finished(entry.Object, lastRunOf(event.Result, event.Outcome))
		}
	case journal.WorkflowBegan:
		a.workflowBegan(entry, event)
		return // its actions follow
	case journal.HotLoop:
		a.note(entry, func(c *controller) {
			if len(c.hot) < mostHot {
				c.hot[entry.Object] = loop{event.String(), entry.Time.Add(event.Slowed)}
			}
		})
	case journal.Unwatched:
		a.note(entry, func(c *controller) {
			if len(c.unseen) < mostUnseen {
				c.unseen[journal.Object{Group: event.Object.Group, Kind: event.Object.Kind}] = event.String()
			}
		})
	}
	if t := a.table.Load(); t != nil {
		t.changed()
	}
}

// note changes the counts of the controller of an entry.
func (a *Activity) note(entry journal.Entry, change func(*controller)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.controllers[entry.Controller]
	if c == nil {
		c = &controller{hot: map[journal.Object]loop{}, unseen: map[journal.Object]string{}}
		a.controllers[entry.Controller] = c
	}
	if entry.Object.Name != "" {
		a.kinds[schema.GroupKind{Group: entry.Object.Group, Kind: entry.Object.Kind}] = true
	}
	change(c)
}

func (a *Activity) finished(entry journal.Entry, event journal.Finished) {
	a.note(entry, func(c *controller) {
		minute := entry.Time.Unix() / 60
		b := &c.buckets[minute%minutes]
		if b.minute != minute {
			*b = bucket{minute: minute}
		}
		b.reconciles++
		if event.Result == journal.ResultFailed {
			b.failed++
		}
		c.frequent.add(entry.Object, entry.Time)
		c.slow(reconcileTime{entry.Object, event.Duration, entry.Time})
		if l, ok := c.hot[entry.Object]; ok && !entry.Time.Before(l.until) {
			delete(c.hot, entry.Object)
		}
	})
}

// slow keeps a reconcile if it is one of the slowest of the last hour: of each object the slowest.
func (c *controller) slow(r reconcileTime) {
	recent := func(o reconcileTime) bool { return r.at.Sub(o.at) <= minutes*time.Minute }
	if n := len(c.slowest); n == mostSlowest && recent(c.slowest[n-1]) && c.slowest[n-1].took >= r.took {
		return
	}
	same := slices.IndexFunc(c.slowest, func(o reconcileTime) bool { return o.object == r.object })
	if same >= 0 && recent(c.slowest[same]) && c.slowest[same].took >= r.took {
		return
	}
	c.slowest = slices.DeleteFunc(c.slowest, func(o reconcileTime) bool { return o.object == r.object || !recent(o) })
	c.slowest = append(c.slowest, r)
	slices.SortStableFunc(c.slowest, func(a, b reconcileTime) int { return cmp.Compare(b.took, a.took) })
	c.slowest = c.slowest[:min(len(c.slowest), mostSlowest)]
}

// frequencies count the objects that are reconciled most often, with the algorithm Space-Saving
// (Metwally, Agrawal and El Abbadi, 2005): a new object takes the place of the rarest.
type frequencies struct {
	slots []frequency
	since time.Time // of the half hour that is counted
}

type frequency struct {
	object journal.Object
	count  int
	surely int // the count without what was taken over
}

const mostFrequencies = 32

func (f *frequencies) add(object journal.Object, at time.Time) {
	if at.Sub(f.since) > minutes*time.Minute/2 { // halve, so that what was frequent once is forgotten
		f.since = at
		for i := range f.slots {
			f.slots[i].count /= 2
			f.slots[i].surely /= 2
		}
	}
	rarest := 0
	for i := range f.slots {
		if f.slots[i].object == object {
			f.slots[i].count++
			f.slots[i].surely++
			return
		}
		if f.slots[i].count < f.slots[rarest].count {
			rarest = i
		}
	}
	if len(f.slots) < mostFrequencies {
		f.slots = append(f.slots, frequency{object, 1, 1})
		return
	}
	f.slots[rarest] = frequency{object, f.slots[rarest].count + 1, 1}
}

// top returns those that are surely among the most frequent, the most frequent first.
func (f *frequencies) top(most int) []frequency {
	all := slices.DeleteFunc(slices.Clone(f.slots), func(s frequency) bool { return s.surely < 3 })
	slices.SortStableFunc(all, func(a, b frequency) int { return cmp.Compare(b.surely, a.surely) })
	return all[:min(len(all), most)]
}

// Kinds returns the kinds that have been reconciled, sorted.
func (a *Activity) Kinds() []schema.GroupKind {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []schema.GroupKind
	for kind := range a.kinds {
		all = append(all, kind)
	}
	slices.SortFunc(all, func(x, y schema.GroupKind) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Group, y.Group))
	})
	return all
}

// A plot has the counts of a controller at one time.
type plot struct {
	Name               string
	Reconciles, Failed []int // by minute, the latest last
	Slowest            []reconcileTime
	Frequent           []frequency
	Hot                map[journal.Object]loop
	Unseen             []string
}

// plots returns what the controllers have done, by name.
func (a *Activity) plots(now time.Time) []plot {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []plot
	for name, c := range a.controllers {
		p := plot{Name: name, Slowest: slices.Clone(c.slowest), Frequent: c.frequent.top(mostSlowest), Hot: map[journal.Object]loop{}}
		for i := range minutes {
			minute := now.Unix()/60 - minutes + 1 + int64(i)
			b := c.buckets[minute%minutes]
			if b.minute != minute {
				b = bucket{}
			}
			p.Reconciles, p.Failed = append(p.Reconciles, b.reconciles), append(p.Failed, b.failed)
		}
		for o, l := range c.hot {
			if now.Before(l.until) {
				p.Hot[o] = l
			}
		}
		for _, text := range c.unseen {
			p.Unseen = append(p.Unseen, text)
		}
		slices.Sort(p.Unseen)
		all = append(all, p)
	}
	slices.SortFunc(all, func(x, y plot) int { return cmp.Compare(x.Name, y.Name) })
	return all
}
