// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"context"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
)

const (
	// sameWrites is how often the same value may be written within loopWindow because another
	// client has undone it: the write that reaches this number is reported.
	sameWrites = 6
	loopWindow = 2 * time.Minute

	firstSlow, mostSlow = time.Second, 5 * time.Minute
)

// A Detector keeps what is known of the writes of earlier reconciles of one object, and slows the
// object down while it is in a hot loop. Its zero value knows nothing, and neither does a nil one,
// of which all methods but Observe may be called: see [Keep].
type Detector struct {
	history history
	owners  []string // the field owners that were used besides the name of the engine
	echoes  echoes

	level      int
	until      time.Time // the next reconcile waits until then
	over       time.Time // when the hot loop is over, if it is not found again
	generation int64
	policies   map[string]string
	text       string // for the condition
}

var _ track.History = (*Detector)(nil)

// Keep returns the detector, or nil if it knows nothing: there is one for each object.
func (d *Detector) Keep() *Detector {
	if d.isSlowing() || len(d.history) > 0 || len(d.owners) > 0 || !d.echoes.empty() || d.text != "" {
		return d
	}
	return nil
}

func (d *Detector) isSlowing() bool {
	return d != nil && (d.level > 0 || !d.until.IsZero() || !d.over.IsZero())
}

// knowledge returns the history, which may be empty.
func (d *Detector) knowledge() history {
	if d == nil {
		return nil
	}
	return d.history
}

// Known implements [track.History].
func (d *Detector) Known(object journal.Object, before *track.Snapshot) (state *track.Snapshot, suspected bool) {
	known := d.knowledge().known(object)
	if known.newerThan(before) {
		before = nil
	}
	return before, known.suspected(before)
}

// Answered implements [track.History].
func (d *Detector) Answered(object journal.Object, version string) bool {
	return d.knowledge().known(object).is(version)
}

// Reads returns what is to note the versions that the reconcile reads, nil unless it may be an
// echo.
func (d *Detector) Reads() *track.Versions {
	if d == nil {
		return nil
	}
	return d.echoes.reads()
}

// Text describes the hot loop for a condition. It is empty if there is none, or if it is over.
func (d *Detector) Text() string {
	if d == nil {
		return ""
	}
	return d.text
}

// Until is when the next reconcile may run.
func (d *Detector) Until() time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.until
}

// Slows reports whether the object has to wait. A change of its spec, a change of its policy, which
// may end the hot loop, and its deletion do not wait.
func (d *Detector) Slows(obj client.Object, now time.Time) bool {
	return d != nil && now.Before(d.until) && obj.GetGeneration() == d.generation && obj.GetDeletionTimestamp().IsZero() &&
		maps.Equal(policy.Annotations(obj), d.policies)
}

// Expire ends a hot loop that was not found again.
func (d *Detector) Expire(now time.Time) {
	if d != nil && d.level > 0 && !now.Before(d.over) {
		d.level, d.until, d.text = 0, time.Time{}, ""
	}
}

// UntilOver returns when to reconcile again, so that no condition reports a hot loop that is over;
// zero if none is reported.
func (d *Detector) UntilOver(now time.Time) time.Duration {
	if d.Text() == "" {
		return 0
	}
	return max(d.over.Sub(now), time.Second)
}

// Disputes returns the fields of the objects that other clients have changed back before, as they
// are when a reconcile begins. Obj is the reconciled object as it was read.
func (d *Detector) Disputes(ctx context.Context, reader client.Reader, self journal.Object, obj client.Object) Disputes {
	return d.knowledge().disputes(ctx, reader, self, obj)
}

// Observe examines what a reconcile has written. If that shows a hot loop, the object is slowed
// down: Observe returns the loop, and how long the next reconcile has to wait.
func (d *Detector) Observe(r Reconcile) (found *Loop, slow time.Duration) {
	r.Record.Close()
	d.history.forget(d.window(), r.Now)
	found = d.fought(r)
	d.history.clip()
	if !r.Failed && !r.Record.Refused() {
		d.history.accept(r.Disputes, r.Now)
	}
	if d.echoes.observe(r, d.level > 0) && found == nil {
		found = &Loop{Write: r.lastWrite(), Count: d.echoes.count, Within: time.Duration(d.echoes.count) * echoWithin}
		found.Paths = found.Write.Sent.Paths()
	}
	if found == nil {
		if d.text != "" && r.Generation != d.generation {
			d.over = r.Now // the spec has changed, and the loop was not found again
		}
		return nil, 0
	}
	slow = d.slow()
	d.level++
	d.until, d.over = r.Now.Add(slow), r.Now.Add(slow*2+loopWindow)
	d.generation, d.policies = r.Generation, r.Policies
	d.echoes.reset()
	found.First = d.text == ""
	if found.Fight {
		found.Managers = found.managers(append([]string{r.Owner}, d.owners...))
	}
	d.text = found.text(r.Owner)
	return found, slow
}

// slow is how long the next hot loop has to wait.
func (d *Detector) slow() time.Duration { return min(firstSlow<<min(d.level, 10), mostSlow) }

// window is how far apart writes of the same value may be, which are slowed down themselves.
func (d *Detector) window() time.Duration { return loopWindow + sameWrites*d.slow() }

// fought examines the writes of a reconcile, and returns a fight over what one of them has written,
// nil if there is none.
func (d *Detector) fought(r Reconcile) *Loop {
	for _, w := range r.Record.InVain() {
		d.history.target(w.Object, r.Now).found(w.Before)
	}
	var found *Loop
	for _, w := range r.Record.Writes() {
		if w.Owner != "" && w.Owner != r.Owner && !slices.Contains(d.owners, w.Owner) {
			d.owners = append(d.owners, w.Owner)
		}
		if w.Verb == "deletecollection" { // what it has deleted may be created again
			d.history.forgetExistence()
			continue
		}
		if !track.IsPartOf(w.Subresource) {
			continue
		}
		paths, count := d.history.target(w.Object, r.Now).compare(w, r, d.window())
		if count >= sameWrites && (found == nil || count > found.Count) {
			found = &Loop{Write: w, Paths: paths, Fight: true, Count: count, Within: loopWindow}
		}
	}
	return found
}
