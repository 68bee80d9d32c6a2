// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package managers remembers what all controllers of a manager share, and controller-runtime has no
// place for: who observes them, and the shard that the process is. Package operator writes it,
// before controllers are added, and what makes controllers reads it.
package managers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Shared is what the controllers of one manager share.
type Shared struct {
	Observers []journal.Observer
	Shard     *shard.Shard // nil if the process is none
}

var (
	mu    sync.Mutex // for known
	known = map[manager.Manager]Shared{}
)

// Of returns what is known of a manager: nothing if package operator has not made or observed it,
// or if it has ended.
func Of(mgr manager.Manager) Shared {
	if !isKey(mgr) {
		return Shared{}
	}
	mu.Lock()
	defer mu.Unlock()
	s := known[mgr]
	s.Observers = slices.Clone(s.Observers)
	return s
}

// AddObserver adds an observer of the controllers of a manager that has not started.
func AddObserver(mgr manager.Manager, observer journal.Observer) error {
	return change(mgr, func(s *Shared) { s.Observers = append(s.Observers, observer) })
}

// SetShard notes which shard a manager that has not started is.
func SetShard(mgr manager.Manager, to *shard.Shard) error {
	return change(mgr, func(s *Shared) { s.Shard = to })
}

// change changes what is known of a manager, and has it forgotten when the manager ends.
func change(mgr manager.Manager, how func(*Shared)) error {
	if !isKey(mgr) {
		return fmt.Errorf("a manager of type %T can't be distinguished from others: make it a pointer", mgr)
	}
	mu.Lock()
	s, already := known[mgr]
	how(&s)
	known[mgr] = s
	mu.Unlock()
	if already {
		return nil
	}
	if err := mgr.Add(forgetting{mgr}); err != nil {
		forget(mgr)
		return fmt.Errorf("adding what forgets the manager: %w", err)
	}
	return nil
}

// isKey reports whether a manager can be the key of a map.
func isKey(mgr manager.Manager) bool { return mgr != nil && reflect.ValueOf(mgr).Comparable() }

func forget(mgr manager.Manager) {
	mu.Lock()
	defer mu.Unlock()
	delete(known, mgr)
}

// forgetting forgets a manager when it ends. A process that makes many of them would keep all. What
// is known of one that never starts stays.
type forgetting struct{ mgr manager.Manager }

// Start implements [manager.Runnable].
func (f forgetting) Start(ctx context.Context) error {
	<-ctx.Done()
	forget(f.mgr)
	return nil
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (forgetting) NeedLeaderElection() bool { return false }
