// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// External is the system outside of the cluster, in memory. Its zero value is empty.
type External struct {
	mu  sync.Mutex // for all
	all map[types.UID]bool
}

// Keep makes sure that there is something for a Widget.
func (e *External) Keep(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = make(map[types.UID]bool)
	}
	e.all[uid] = true
}

// Remove makes sure that there is nothing for a Widget.
func (e *External) Remove(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, uid)
}

// Len returns for how many Widgets there is something.
func (e *External) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}
