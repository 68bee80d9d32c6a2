// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func named(name string) journal.Object {
	return journal.Object{Kind: "Pod", Namespace: "default", Name: name}
}

// An operator that writes ever more objects does not make the history grow.
func TestAHistoryIsBounded(t *testing.T) {
	var h history
	if h.known(self) != nil {
		t.Error("an empty history knows an object")
	}
	first := h.target(self, start)
	for i := range 2 * mostTargets {
		h.target(self, start.Add(time.Duration(i)*time.Minute))
		h.target(named(strconv.Itoa(i)), start.Add(time.Duration(i)*time.Minute))
	}
	if len(h) != mostTargets {
		t.Errorf("it knows %d objects, want %d", len(h), mostTargets)
	}
	if h.known(self) != first {
		t.Error("it has dropped the object that is written again and again")
	}
	if h.known(named("0")) != nil {
		t.Error("it has kept the object that was written longest ago")
	}
	if h.known(named(strconv.Itoa(2*mostTargets-1))) == nil {
		t.Error("it has dropped the newest object")
	}
}

func TestAHistoryForgets(t *testing.T) {
	var h history
	h.target(self, start).wrote(1, 1, true, start, loopWindow)
	h.target(self, start).wrote(existence, there, true, start.Add(time.Minute), loopWindow)
	h.forget(time.Minute, start.Add(time.Minute+1))
	if facts := h.known(self).facts; len(facts) != 1 || facts[0].path != existence {
		t.Errorf("after a minute it knows %+v, want what was written last", facts)
	}
	h.forgetExistence()
	if facts := h.known(self).facts; len(facts) != 0 {
		t.Errorf("it knows %+v of the existence", facts)
	}
	h.forget(time.Minute, start.Add(keptTargets))
	if h.known(self) == nil {
		t.Error("it has dropped the version too early")
	}
	h.forget(time.Minute, start.Add(keptTargets+1))
	if len(h) != 0 {
		t.Error("it has kept the version for too long")
	}
}

// Only objects that have a disputed field are read when a reconcile begins.
func TestDisputes(t *testing.T) {
	c := newCluster(t)
	c.create(pod("undisputed"))
	c.create(pod("disputed"))
	c.label("disputed", "tier", "theirs")
	path := track.Hash([]byte(".metadata.labels.tier"))
	for _, name := range []string{"undisputed", "disputed", "deleted", "unread"} {
		target := c.detector.history.target(named(name), start)
		target.wrote(path, hashOf("ours"), true, start, loopWindow)
		if name != "unread" { // not in the cache
			target.cached = &place{typeOfPod, client.ObjectKey{Namespace: "default", Name: name}}
		}
		if name != "undisputed" {
			target.wrote(path, hashOf("ours"), true, start.Add(time.Second), loopWindow)
		}
	}
	got := c.detector.Disputes(t.Context(), c, self, c.get("self"))
	if len(got) != 2 || c.live != 2 {
		t.Fatalf("%d disputes after %d reads, want 2 each", len(got), c.live)
	}
	equal(t, "value of the field", hashOf("theirs"), got[idOf(named("disputed"))].of(path))
	if value := got[idOf(named("deleted"))]; value.of(existence) != gone || value.of(path) != nothing {
		t.Error("an object that is not there has values")
	}
	equal(t, "existence", there, got[idOf(named("disputed"))].of(existence))

	// A cache that does not have our last write shows no dispute.
	c.detector.history.known(named("disputed")).version = "1000"
	if got := c.detector.Disputes(t.Context(), c, self, c.get("self")); len(got) != 1 {
		t.Errorf("%d disputes with a stale cache, want that of the deleted object", len(got))
	}
}

// The reconciled object is not read again.
func TestADisputeOfTheObjectItself(t *testing.T) {
	c := newCluster(t)
	target := c.detector.history.target(self, start)
	target.wrote(1, 1, true, start, loopWindow)
	target.wrote(1, 1, true, start, loopWindow)
	if got := c.detector.Disputes(t.Context(), c, self, c.get("self")); len(got) != 1 || c.live != 0 {
		t.Errorf("%d disputes after %d reads, want one after none", len(got), c.live)
	}
}

func TestAcceptedDisputes(t *testing.T) {
	tests := []struct {
		name  string
		found uint64 // when the reconcile began
		at    time.Time
		want  int // the facts that are kept
	}{
		{"it was undone, and left so", 2, start.Add(time.Minute), 0},
		{"it was as we have written it", 1, start.Add(time.Minute), 1},
		{"it was undone, and written again", 2, start, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var h history
			target := h.target(self, start)
			target.wrote(7, 1, true, start, loopWindow)
			target.wrote(7, 1, true, start, loopWindow)
			h.accept(Disputes{idOf(self): {7: test.found}, 99: {}}, test.at)
			equal(t, "facts are kept", test.want, len(target.facts))
		})
	}
}
