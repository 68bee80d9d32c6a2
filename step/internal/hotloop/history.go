// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A history is the objects that earlier reconciles have written. They are few: a map would take
// more memory than they do.
type history []*target

const (
	mostTargets = 64
	// keptTargets is how long the version of a target is known.
	keptTargets = time.Hour
)

func idOf(o journal.Object) uint64 {
	return track.Hash([]byte(strings.Join([]string{o.Group, o.Kind, o.Namespace, o.Name}, "\x00")))
}

// known returns what is known of an object, nil if nothing is. The methods of a target that only
// read allow nil.
func (h history) known(object journal.Object) *target {
	if len(h) == 0 {
		return nil
	}
	return h.at(idOf(object))
}

// at returns the target with an id, nil if there is none.
func (h history) at(id uint64) *target {
	for _, t := range h {
		if t.id == id {
			return t
		}
	}
	return nil
}

// target returns what is known of an object that was written. If there are too many, the one that
// was written longest ago is dropped.
func (h *history) target(object journal.Object, now time.Time) *target {
	id := idOf(object)
	t := h.at(id)
	if t == nil {
		if len(*h) >= mostTargets {
			oldest := slices.MinFunc(*h, func(a, b *target) int { return a.at.Compare(b.at) })
			*h = slices.DeleteFunc(*h, func(o *target) bool { return o == oldest })
		}
		t = &target{id: id}
		*h = append(*h, t)
	}
	t.at = now
	return t
}

// forget drops what is too old.
func (h *history) forget(window time.Duration, now time.Time) {
	for _, t := range *h {
		t.facts = slices.DeleteFunc(t.facts, func(f fact) bool { return now.Sub(f.at) > window })
		if len(t.facts) == 0 {
			t.facts = nil
		}
	}
	*h = slices.DeleteFunc(*h, func(t *target) bool { return now.Sub(t.at) > keptTargets })
}

// clip drops spare capacity.
func (h history) clip() {
	for _, t := range h {
		if cap(t.facts) > len(t.facts) {
			t.facts = slices.Clip(slices.Clone(t.facts))
		}
	}
}

// forgetExistence drops what is known of the creation and deletion of objects.
func (h history) forgetExistence() {
	for _, t := range h {
		t.facts = slices.DeleteFunc(t.facts, func(f fact) bool { return f.path == existence })
	}
}

// Disputes are the fields of the objects that other clients have changed back before, as they are
// when a reconcile begins, by the ids of the objects.
type Disputes map[uint64]factsOf

// disputes reads the objects whose fields other clients have changed back before. Self is the
// reconciled object, which is not read again. The steps of the reconcile see the same, or something
// newer.
func (h history) disputes(ctx context.Context, reader client.Reader, self journal.Object, obj client.Object) Disputes {
	var all Disputes
	for _, t := range h {
		if !slices.ContainsFunc(t.facts, fact.disputed) {
			continue
		}
		var now *track.Snapshot
		switch {
		case t.id == idOf(self):
			now = track.SnapshotOf(obj)
		case t.cached != nil:
			obj := track.NewOf(t.cached.of)
			switch err := reader.Get(ctx, t.cached.key, obj, track.Sharing...); {
			case err == nil:
				now = track.SnapshotOf(obj)
			case apierrors.IsNotFound(err):
				now = &track.Snapshot{Absent: true}
			}
		}
		if now == nil || t.newerThan(now) {
			continue
		}
		if all == nil {
			all = make(Disputes)
		}
		all[t.id] = factsIn(now)
	}
	return all
}

// accept drops what was undone when the reconcile began, if the reconcile has not written it again
// although nothing has failed: then the value may come and go, for example as a request that
// another controller removes when it has served it.
func (h history) accept(began Disputes, now time.Time) {
	for id, values := range began {
		if t := h.at(id); t != nil {
			t.facts = slices.DeleteFunc(t.facts, func(f fact) bool {
				return f.disputed() && f.at.Before(now) && values.of(f.path) != f.value
			})
		}
	}
}

// factsOf are the values of the fields of an object, as facts have them.
type factsOf map[uint64]uint64

// nothing is the value of a field that is not there.
var nothing = hashOf(nil)

func (f factsOf) of(path uint64) uint64 {
	if value, ok := f[path]; ok {
		return value
	}
	return nothing
}

func factsIn(s *track.Snapshot) factsOf {
	values := factsOf{existence: there}
	if s.Absent || s.Terminating {
		values[existence] = gone
	}
	for _, sub := range []string{"", "status"} {
		for path, value := range s.Leaves(sub) {
			values[track.Hash([]byte(path))] = hashOf(value)
		}
	}
	return values
}
