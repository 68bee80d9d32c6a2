// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/journal"
)

// What is known of one manager is not known of another one, and not after its end.
func TestManagersAreApart(t *testing.T) {
	first, second := &fake{}, &fake{}
	ring, ours := journal.NewRing(journal.RingOptions{}), &shard.Shard{}
	must(t, AddObserver(first, ring))
	must(t, AddObserver(first, ring))
	must(t, SetShard(second, ours))
	if got := Of(first); len(got.Observers) != 2 || got.Shard != nil || len(first.added) != 1 {
		t.Errorf("the first manager: %+v, %d runnables", got, len(first.added))
	}
	if got := Of(second); len(got.Observers) != 0 || got.Shard != ours {
		t.Errorf("the second manager: %+v", got)
	}
	Of(first).Observers[0] = nil
	if Of(first).Observers[0] == nil {
		t.Error("a caller has changed what is known")
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	must(t, first.added[0].Start(ctx))
	if got := Of(first); len(got.Observers) != 0 || Of(second).Shard != ours {
		t.Errorf("after its end: %+v; the other one: %+v", got, Of(second))
	}
	must(t, second.added[0].Start(ctx))
	if len(known) != 0 {
		t.Errorf("%d managers are kept", len(known))
	}
}

// A manager that takes no runnables is not kept. One that is no key is refused, and nothing is
// known of it.
func TestManagersThatAreNotKept(t *testing.T) {
	broken := &fake{err: errors.New("it has started")}
	if err := SetShard(broken, &shard.Shard{}); !errors.Is(err, broken.err) || len(known) != 0 {
		t.Errorf("error %v, %d managers are kept", err, len(known))
	}
	value := struct {
		manager.Manager
		names []string
	}{}
	if err := AddObserver(value, nil); err == nil || Of(value).Observers != nil || Of(nil).Observers != nil {
		t.Errorf("error %v", err)
	}
}

// fake is as much of a manager as is needed.
type fake struct {
	manager.Manager
	added []manager.Runnable
	err   error
}

func (f *fake) Add(r manager.Runnable) error {
	if f.err != nil {
		return f.err
	}
	f.added = append(f.added, r)
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
