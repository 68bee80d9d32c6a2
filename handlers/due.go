// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dues are the handlers to call, by object. An object of which nothing is due takes no memory. The
// queue of the controller has the names of the others, and decides when each is processed.
type dues struct {
	mu   sync.Mutex // for all below
	all  map[client.ObjectKey]due
	most int // how many objects all has had
}

// mostKept is the size of a map that is kept when it is empty. A map does not shrink, and all objects
// are due when the process starts.
const mostKept = 64

// A due is what is to be done for one object.
type due struct {
	why   reason
	calls []call
}

// A reason is why all handlers of a kind are called.
type reason uint8

const (
	reasonChange reason = 1 << iota // it is new or has changed
	reasonGone
	reasonResync // the informer has repeated it
)

// A call is that of one handler at some time.
type call struct {
	entry  *entry
	at     time.Time
	failed bool // it is the next try after a failure
}

// mark notes why all handlers are due.
func (d *dues) mark(name client.ObjectKey, why reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.all[name]
	x.why |= why
	d.put(name, x)
}

// add notes that one handler is due at a time: the earlier one, if it is already due.
func (d *dues) add(name client.ObjectKey, c call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.all[name]
	i := slices.IndexFunc(x.calls, func(o call) bool { return o.entry == c.entry })
	switch {
	case i < 0:
		x.calls = append(x.calls, c)
	case c.at.Before(x.calls[i].at):
		x.calls[i] = c
	}
	d.put(name, x)
}

func (d *dues) put(name client.ObjectKey, x due) {
	if d.all == nil {
		d.all = make(map[client.ObjectKey]due)
	}
	d.all[name] = x
	d.most = max(d.most, len(d.all))
}

// remove forgets an object.
func (d *dues) remove(name client.ObjectKey) {
	delete(d.all, name)
	if len(d.all) == 0 && d.most > mostKept {
		d.all, d.most = nil, 0
	}
}

// take returns what is due now, and forgets it. A handler that is due because of a change is not
// due later on, too: it says again when it is.
func (d *dues) take(name client.ObjectKey, now time.Time) due {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, ok := d.all[name]
	if !ok {
		return due{}
	}
	taken := due{why: x.why}
	var rest []call
	for _, c := range x.calls {
		if x.why&(reasonChange|reasonGone) != 0 || !c.at.After(now) {
			taken.calls = append(taken.calls, c)
		} else {
			rest = append(rest, c)
		}
	}
	if len(rest) == 0 {
		d.remove(name)
	} else {
		d.all[name] = due{calls: rest}
	}
	return taken
}

// restore has what was taken be due again.
func (d *dues) restore(name client.ObjectKey, taken due) {
	if taken.why != 0 {
		d.mark(name, taken.why)
	}
	for _, c := range taken.calls {
		d.add(name, c)
	}
}

// next returns how long it takes until something is due for an object, and false if nothing is.
func (d *dues) next(name client.ObjectKey, now time.Time) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, ok := d.all[name]
	if !ok {
		return 0, false
	}
	if x.why != 0 || len(x.calls) == 0 {
		return 0, true
	}
	first := slices.MinFunc(x.calls, func(a, b call) int { return a.at.Compare(b.at) })
	return max(first.at.Sub(now), 0), true
}

// drop forgets the calls of a handler.
func (d *dues) drop(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, x := range d.all {
		x.calls = slices.DeleteFunc(x.calls, func(c call) bool { return c.entry == e })
		if x.why == 0 && len(x.calls) == 0 {
			d.remove(name)
			continue
		}
		d.all[name] = x
	}
}

// names returns the objects of which something is due.
func (d *dues) names() []client.ObjectKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make([]client.ObjectKey, 0, len(d.all))
	for name := range d.all {
		names = append(names, name)
	}
	return names
}
