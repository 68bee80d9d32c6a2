// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// External is an external system, in memory. The zero value is empty.
type External struct {
	mu  sync.Mutex // for all
	all map[types.UID]bool
}

// Keep creates the external resource of a Widget, unless it exists.
func (e *External) Keep(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = make(map[types.UID]bool)
	}
	e.all[uid] = true
}

// Remove deletes the external resource of a Widget, if it exists.
func (e *External) Remove(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, uid)
}

// Len returns the number of external resources.
func (e *External) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}
