// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// handClock is a time that a test moves.
type handClock struct{ now time.Time }

func newTestInventory(e External) (*inventory, *handClock) {
	c := &handClock{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	e.Name = "buckets"
	return newInventory(e, func() time.Time { return c.now }), c
}

func ids(resources []Resource) []string {
	var list []string
	for _, r := range resources {
		list = append(list, r.ID)
	}
	return list
}

func everyResource(Resource) bool { return true }

// The identity of a system decides what a second Create of the same thing does, which is what an
// operator does that has crashed before it noted the id of the first.
func TestIdentities(t *testing.T) {
	creation := Creation{Name: "x", Token: "t", Tags: map[string]string{"owner": "u1"}, Owner: "u1"}
	tests := map[string]struct {
		identity Identity
		ids      []string // after Create was called twice
		second   string   // what the second one has returned
		err      error
		created  int // for the owner
		mints    bool
	}{
		"name":  {IdentityName, []string{"x"}, "", ErrExists, 1, false},
		"token": {IdentityToken, []string{"buckets-1"}, "buckets-1", nil, 1, true},
		"tag":   {IdentityTag, []string{"buckets-1", "buckets-2"}, "buckets-2", nil, 2, true},
		"none":  {IdentityNone, []string{"buckets-1", "buckets-2"}, "buckets-2", nil, 2, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestInventory(External{Identity: test.identity})
			if _, err := s.create(creation); err != nil {
				t.Fatal(err)
			}
			second, err := s.create(creation)
			if !errors.Is(err, test.err) || second.ID != test.second {
				t.Errorf("the second one returns %q and %v, want %q and %v", second.ID, err, test.second, test.err)
			}
			if diff := cmp.Diff(test.ids, ids(s.find(everyResource))); diff != "" {
				t.Error(diff)
			}
			if s.Created("u1") != test.created || s.Created("u2") != 0 || s.MintsIDs() != test.mints {
				t.Errorf("%d created for the owner, %d for another one, mints ids %t", s.Created("u1"), s.Created("u2"), s.MintsIDs())
			}
		})
	}
}

// A token stands for what was created with it, as long as that is there. No token is none.
func TestTokens(t *testing.T) {
	s, _ := newTestInventory(External{Identity: IdentityToken})
	create := func(token string) string {
		r, err := s.create(Creation{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	first := create("t")
	if err := s.delete(first); err != nil {
		t.Fatal(err)
	}
	if again := create("t"); again == first {
		t.Errorf("the token of what was deleted returns it: %s", again)
	}
	if a, b := create(""), create(""); a == b {
		t.Errorf("two creations without a token return %s", a)
	}
}

func TestNamesAreNeeded(t *testing.T) {
	s, _ := newTestInventory(External{Identity: IdentityName})
	if _, err := s.create(Creation{}); err == nil || err.Error() != `external system "buckets" wants a name` {
		t.Errorf("got %v", err)
	}
}

func TestUpdateAndDelete(t *testing.T) {
	s, _ := newTestInventory(External{Identity: IdentityName, Resources: []Resource{{ID: "there-before", Spec: map[string]string{"size": "1"}}}})
	if err := s.update("there-before", map[string]string{"size": "2"}); err != nil {
		t.Error(err)
	}
	if r, err := s.get("there-before"); err != nil || r.Spec["size"] != "2" {
		t.Errorf("got %v, %v", r, err)
	}
	if err := s.delete("there-before"); err != nil {
		t.Error(err)
	}
	_, err := s.get("there-before")
	for what, err := range map[string]error{"get": err, "update": s.update("there-before", nil), "delete": s.delete("there-before")} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of what is gone: %v", what, err)
		}
	}
	if owner := s.owner("there-before"); owner != "" {
		t.Errorf("what is gone belongs to %s", owner)
	}
}

// What an inventory returns are copies, and so is what it keeps.
func TestInventoryCopies(t *testing.T) {
	before := External{Identity: IdentityName, Resources: []Resource{{ID: "a", Tags: map[string]string{"k": "v"}, Spec: map[string]string{"size": "1"}}}}
	s, _ := newTestInventory(before)
	creation := Creation{Name: "b", Spec: map[string]string{"size": "1"}}
	created, err := s.create(creation)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.get("a")
	if err != nil {
		t.Fatal(err)
	}
	listed := s.Inventory()[0]
	for _, m := range []map[string]string{created.Spec, creation.Spec, got.Spec, got.Tags, listed.Spec, before.Resources[0].Spec} {
		m["size"], m["k"] = "changed", "changed"
	}
	want := []external.Resource{
		{ID: "a", Tags: map[string]string{"k": "v"}, Spec: map[string]string{"size": "1"}},
		{ID: "b", Name: "b", Spec: map[string]string{"size": "1"}},
	}
	if diff := cmp.Diff(want, s.Inventory()); diff != "" {
		t.Error(diff)
	}
}

// Reads that lag do not see the last changes, for a minute at most; Get always does.
func TestReadLag(t *testing.T) {
	s, clock := newTestInventory(External{Identity: IdentityName, ReadLag: 2, Resources: []Resource{{ID: "old", Spec: map[string]string{"size": "1"}}}})
	expect := func(when string, want ...string) {
		t.Helper()
		if got := ids(s.find(everyResource)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	create := func(name string) {
		t.Helper()
		if _, err := s.create(Creation{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	create("a")
	expect("after a creation", "old")
	if _, err := s.get("a"); err != nil {
		t.Errorf("Get does not see what was created: %v", err)
	}
	if err := s.delete("old"); err != nil {
		t.Fatal(err)
	}
	expect("after a deletion too", "old")
	create("b")
	expect("after one more", "a", "old")
	create("c")
	expect("after two more", "a")
	clock.now = clock.now.Add(readLagEnds)
	expect("after a minute", "a", "b", "c")
	if err := s.update("a", map[string]string{"size": "2"}); err != nil {
		t.Fatal(err)
	}
	if got := s.find(func(r Resource) bool { return r.Spec["size"] == "2" }); len(got) != 0 {
		t.Errorf("an update is seen at once: %v", got)
	}
}

// Another client changes what belongs to an object, and nothing that does not.
func TestDrift(t *testing.T) {
	s, _ := newTestInventory(External{Identity: IdentityName, Resources: []Resource{{ID: "a-foreign", Spec: map[string]string{"size": "1"}}}})
	if id, ok := s.Drift(""); ok {
		t.Errorf("%s drifts, which belongs to no object", id)
	}
	for name, owner := range map[string]types.UID{"b": "u1", "c": "u2"} {
		if _, err := s.create(Creation{Name: name, Owner: owner, Spec: map[string]string{"size": "1", "zone": "z"}}); err != nil {
			t.Fatal(err)
		}
	}
	for owner, want := range map[types.UID]string{"u2": "c", "": "b"} {
		id, ok := s.Drift(owner)
		r, err := s.get(id)
		if !ok || id != want || err != nil || r.Spec["size"] != "1 (drifted)" || r.Spec["zone"] != "z" {
			t.Errorf("for %q: %q, %t, now %v", owner, id, ok, r.Spec)
		}
	}
	if _, ok := s.Drift("u3"); ok {
		t.Error("something of an object without resources drifts")
	}
}

// A client of an external system: each call takes its time, is in the trace, and has an error that
// says what was done.
func TestExternalClient(t *testing.T) {
	var took time.Duration
	var found, listed []Resource
	w := Workload{
		Externals: []External{
			{Name: "buckets", Identity: IdentityTag, Latency: 3 * time.Second},
			{Name: "notes", Identity: IdentityNone},
		},
		Operator: func(ctx context.Context, p *Process) error {
			c := p.External("buckets")
			if p.owner.Name != "operator" {
				return idleOperator(ctx, p)
			}
			begin := time.Now()
			r, err := c.Create(ctx, Creation{Name: "x", Tags: map[string]string{"for": "x"}})
			if took = time.Since(begin); err != nil {
				t.Error(err)
			}
			if err := c.Update(ctx, r.ID, map[string]string{"size": "2"}); err != nil {
				t.Error(err)
			}
			found, err = c.FindByTag(ctx, "for", "x")
			if err != nil {
				t.Error(err)
			}
			if listed, err = c.List(ctx); err != nil {
				t.Error(err)
			}
			_, err = c.Get(ctx, "none")
			if want := "get buckets: no such resource: none"; !errors.Is(err, ErrNotFound) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if _, err := p.External("notes").FindByTag(ctx, "for", "x"); err == nil {
				t.Error("a system without identities was searched by tags")
			}
			return idleOperator(ctx, p)
		},
	}
	script(t, w, func(w *World) {
		w.Settle()
		want := []Resource{{ID: "buckets-1", Name: "x", Tags: map[string]string{"for": "x"}, Spec: map[string]string{"size": "2"}}}
		for what, got := range map[string][]Resource{"Resources": w.Resources("buckets"), "FindByTag": found, "List": listed} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
	})
	if took < 3*time.Second || took > 3*time.Second+10*latency {
		t.Errorf("a call took %s, want the latency", took)
	}
}
