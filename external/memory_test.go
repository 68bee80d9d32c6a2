// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctrlkit/ctrlkit/failure"
)

// What a process knows of a creation decides whether it is repeated, and whether a person has to
// look.
func TestMemoryOfCreations(t *testing.T) {
	const uid = "u"
	own := func(m *memory) record {
		return record{step: begun, at: time.Unix(1, 0), process: m.process, token: "t"}
	}
	other := record{step: begun, at: time.Unix(1, 0), process: "another", token: "t"}
	refusal := Refused(errors.New("invalid"))
	for name, tt := range map[string]struct {
		do    func(m *memory) record
		id    string
		maybe bool
	}{
		"begun by this process, not called":  {do: own},
		"begun by another process, not seen": {do: func(*memory) record { return other }, maybe: true},
		"begun by another process, seen":     {do: func(m *memory) record { m.see(uid, "", other); return other }, maybe: true},
		"in progress, or ended by a panic":   {do: func(m *memory) record { m.called(uid, 1, own(m), failure.Classify); return own(m) }, maybe: true},
		"created":                            {do: func(m *memory) record { m.called(uid, 1, own(m), failure.Classify)("id", nil); return own(m) }, id: "id", maybe: true},
		"answer lost": {do: func(m *memory) record {
			m.called(uid, 1, own(m), failure.Classify)("", errors.New("reset"))
			return own(m)
		}, maybe: true},
		"refused": {do: func(m *memory) record { m.called(uid, 1, own(m), failure.Classify)("", refusal); return own(m) }},
		"refused after a lost answer": {do: func(m *memory) record {
			m.called(uid, 1, own(m), failure.Classify)("", errors.New("reset"))
			m.called(uid, 1, own(m), failure.Classify)("", refusal)
			return own(m)
		}, maybe: true},
		"refused after a crash": {do: func(m *memory) record {
			m.see(uid, "", other)
			m.called(uid, 1, other, failure.Classify)("", refusal)
			return other
		}, maybe: true},
		"forgotten": {do: func(m *memory) record {
			m.called(uid, 1, own(m), failure.Classify)("id", nil)
			m.forget(uid)
			return own(m)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			a, maybe := m.of(uid, tt.do(m))
			if a.id != tt.id || maybe != tt.maybe {
				t.Errorf("got id %q, maybe %t, want %q, %t", a.id, maybe, tt.id, tt.maybe)
			}
		})
	}
}

// Another client may remove all annotations that its own manifest does not have.
func TestMemoryRestoresAnnotations(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(m *memory)
		id     string
		record string
		ok     bool
	}{
		"nothing known": {do: func(*memory) {}},
		"created by us": {do: func(m *memory) { m.called("u", 1, record{step: begun, token: "t"}, failure.Classify)("id", nil) }, id: "id", record: "created 2000-01-01T00:00:00Z token t", ok: true},
		"seen":          {do: func(m *memory) { m.see("u", "id", record{step: created, at: time.Now(), token: "t"}) }, id: "id", record: "created 2000-01-01T00:00:00Z token t", ok: true},
		"a stale cache": {do: func(m *memory) {
			m.called("u", 1, record{step: begun, at: time.Now(), token: "t"}, failure.Classify)("new", nil)
			m.see("u", "old", record{step: created, at: time.Now().Add(-time.Hour)})
		}, id: "new", record: "created 2000-01-01T00:00:00Z token t", ok: true},
		"in progress": {do: func(m *memory) { m.called("u", 1, record{step: begun, at: time.Now(), token: "t"}, failure.Classify) }, record: "begun 2000-01-01T00:00:00Z token t", ok: true},
		"another creation": {do: func(m *memory) {
			m.see("u", "id", record{step: created})
			m.called("u", 1, record{step: begun, at: time.Now(), token: "t-2"}, failure.Classify)
		}, record: "begun 2000-01-01T00:00:00Z token t-2", ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				tt.do(m)
				if id, r, ok := m.restore("u"); id != tt.id || r.String() != tt.record || ok != tt.ok {
					t.Errorf("got %q, %q, %t, want %q, %q, %t", id, r, ok, tt.id, tt.record, tt.ok)
				}
			})
		})
	}
}

// Each attempt writes the intent and its end, so that without a pause its own events would trigger
// the next one.
func TestRefusalsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := failure.Mark(Refused(errors.New("quota")), failure.WithClass(failure.ClassInvalid))
		backoff := failure.Classify(err).Backoff
		never := time.Time{}
		r := refusal{}.again(err, 1, backoff)
		if r.holds(1, never) == nil {
			t.Error("the next attempt follows at once")
		}
		if r.holds(2, never) != nil {
			t.Error("a change of the spec waits")
		}
		if (refusal{}).holds(1, never) != nil {
			t.Error("the first attempt waits")
		}
		first := r.delay
		if r = r.again(err, 1, backoff); r.delay <= first {
			t.Errorf("the pause does not grow: %s, then %s", first, r.delay)
		}
		if r = r.again(err, 2, backoff); r.times != 1 {
			t.Errorf("a change of the spec does not begin anew: %d times", r.times)
		}
		time.Sleep(time.Hour)
		if r.holds(2, never) != nil {
			t.Error("the pause does not end")
		}
		for range 30 {
			r = r.again(err, 2, backoff)
		}
		time.Sleep(r.delay)
		if r.holds(2, never) == nil || r.patient != time.Hour {
			t.Errorf("in a lasting outage the next attempt follows after %s", r.delay)
		}
		if r.holds(2, time.Now()) != nil {
			t.Error("the next attempt waits, although the system creates again")
		}
	})
}
