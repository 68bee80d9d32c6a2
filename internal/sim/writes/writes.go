// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package writes records what the operator writes in a run, in the cluster and outside it, with the
// line of code that each write comes from, and finds the write that a violation is about.
package writes

import (
	"strconv"
	"strings"
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A Log is what the operator has written in one run.
type Log struct {
	mu            sync.Mutex // guards what follows: requests are sent by many goroutines
	origins       map[*apiserver.Request]*external.Origin
	writes, calls int // how many have arrived
	list          []*write
	current       *write
	noticed       []*write // at each violation, the write that was being made
	checkpoints   []int    // how long list was at each checkpoint
}

// New returns an empty log.
func New() *Log { return &Log{origins: map[*apiserver.Request]*external.Origin{}} }

// write is a write to the cluster, or a call with an effect outside it.
type write struct {
	origin  external.Origin
	request *apiserver.Request // nil for a call
	call    external.Call
	code    int // 0: not known
	changes []apiserver.Change
}

// Sent records that its caller sends a request, if it is a write.
func (l *Log) Sent(r *apiserver.Request) {
	if !cluster.IsWrite(r) {
		return
	}
	origin := &external.Origin{Actor: r.Actor, Stack: Stack(1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.origins[r] = origin
}

// Arrive counts a write that passes the faults on its way to the server. putBack must be called if
// it comes again.
func (l *Log) Arrive(r *apiserver.Request) (putBack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if origin := l.origins[r]; origin != nil {
		origin.N = l.writes
	}
	return func() { l.writes-- }
}

// ArriveCall is Arrive for a call.
func (l *Log) ArriveCall(c external.Call) (putBack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if c.Origin != nil {
		c.Origin.N = l.calls
	}
	return func() { l.calls-- }
}

// BeginWrite records that the server is about to answer a write.
func (l *Log) BeginWrite(r *apiserver.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(&write{request: r}, l.origins[r])
}

// BeginCall records that a call is about to have its effect.
func (l *Log) BeginCall(c external.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(&write{call: c}, c.Origin)
}

func (l *Log) begin(w *write, origin *external.Origin) {
	if origin != nil {
		w.origin = *origin
	}
	l.current = w
	l.list = append(l.list, w)
}

// End records that the write or call has had its effect. code is the answer of the server.
func (l *Log) End(code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil {
		l.current.code, l.current = code, nil
	}
}

// Changed records a change of the cluster.
func (l *Log) Changed(c apiserver.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && l.current.request != nil && c.Actor == l.current.request.Actor {
		l.current.changes = append(l.current.changes, c)
	}
}

// Noticed records that a violation is reported now.
func (l *Log) Noticed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noticed = append(l.noticed, l.current)
}

// Checkpoint records that the cluster is compared now.
func (l *Log) Checkpoint() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoints = append(l.checkpoints, len(l.list))
}

// Evidence returns for each violation the write that is most likely wrong, or nil. The violations
// are those for which [Log.Noticed] was called, in the same order.
func (l *Log) Evidence(violations []oracle.Violation, names *strings.Replacer) []*report.Write {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*report.Write, len(violations))
	for i, v := range violations {
		var current *write
		if i < len(l.noticed) {
			current = l.noticed[i]
		}
		if w := l.find(v, current, names); w != nil {
			list[i] = w.render(names)
		}
	}
	return list
}

// find returns the write that a violation is about. current is the one that was being made.
func (l *Log) find(v oracle.Violation, current *write, names *strings.Replacer) *write {
	switch {
	case len(v.Differences) > 0:
		return until(l, v.Checkpoint).findDifference(v.Worst(), names)
	case v.Oracle == oracle.NoLeak:
		// The mistake is a creation that was not recorded, more often than the deletion.
		if w := l.lastCall(func(c external.Call) bool { return !isDeletion(c) && strings.Contains(v.Text, " of "+c.System+" ") }); w != nil {
			return w
		}
	case v.Oracle == oracle.BoundedRequests || v.Oracle == oracle.BecomesIdle:
		return l.busiest()
	}
	return current
}

// until returns what was written before a checkpoint.
func until(l *Log, checkpoint int) *Log {
	if checkpoint < 1 || checkpoint > len(l.checkpoints) {
		return l
	}
	return &Log{list: l.list[:l.checkpoints[checkpoint-1]]}
}

// findDifference returns the last write that made a difference.
func (l *Log) findDifference(d oracle.Difference, names *strings.Replacer) *write {
	thing, _, _ := strings.Cut(d.Thing, " #")
	if rest, ok := strings.CutPrefix(thing, "external "); ok {
		system, _, _ := strings.Cut(rest, " ")
		return l.lastCall(func(c external.Call) bool {
			return c.System == system && isDeletion(c) == (d.Path == "" && d.Got == "")
		})
	}
	missing, extra := d.Path == "" && d.Got == "", d.Path == "" && d.Want == ""
	var last *write
	for i := len(l.list) - 1; i >= 0; i-- {
		w := l.list[i]
		if w.request == nil || objectOf(w, names) != thing {
			continue
		}
		fits := d.Path != "" && !w.isDeletion() && w.changesPath(d.Path) || missing && w.isDeletion() || extra && w.request.Verb == "create"
		if fits && w.code < 300 {
			return w
		}
		if last == nil {
			last = w
		}
	}
	return last
}

// lastCall returns the last call with an effect that fits.
func (l *Log) lastCall(fits func(external.Call) bool) *write {
	for i := len(l.list) - 1; i >= 0; i-- {
		if w := l.list[i]; w.request == nil && w.call.Mutates && fits(w.call) {
			return w
		}
	}
	return nil
}

// recent is how many of the last writes of a run that does not end are looked at.
const recent = 200

// busiest returns the write that was made most often at the end of a run.
func (l *Log) busiest() *write {
	counts := map[string]int{}
	var most *write
	for _, w := range l.list[max(0, len(l.list)-recent):] {
		text := w.text()
		if counts[text]++; most == nil || counts[text] >= counts[most.text()] {
			most = w
		}
	}
	return most
}

func isDeletion(c external.Call) bool { return strings.EqualFold(c.Verb, "delete") }

// text returns what the write asks for.
func (w *write) text() string {
	if w.request == nil {
		return w.call.String()
	}
	return cluster.Describe(w.request)
}

// objectOf returns the object of a write by the name that snapshots have for it.
func objectOf(w *write, names *strings.Replacer) string {
	if len(w.changes) == 0 {
		return names.Replace(cluster.TargetOf(w.request))
	}
	c := w.changes[0]
	content := c.New
	if content == nil {
		content = c.Old
	}
	return names.Replace(cluster.ObjectName(c.Resource, c.Namespace, cluster.CanonicalName(c.Name, content)))
}

// render returns a write as reports show it.
func (w *write) render(names *strings.Replacer) *report.Write {
	r := &report.Write{
		What: "call " + strconv.Itoa(w.origin.N), Actor: w.origin.Actor, Request: names.Replace(w.text()), Stack: Sites(w.origin.Stack),
	}
	if w.request == nil {
		return r
	}
	r.What, r.Object, r.Changes = "write "+strconv.Itoa(w.origin.N), objectOf(w, names), w.lines(names)
	if w.code > 0 {
		r.Answer = strconv.Itoa(w.code)
	}
	return r
}
