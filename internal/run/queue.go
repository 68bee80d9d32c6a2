// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"sync"
	"time"
)

// item is something that happened while the operator ran: a change in the cluster or a line to be shown.
type item struct {
	at     time.Time
	change *Change
	source string // of the line
	line   string
}

// queue takes items from many goroutines, at any rate, for one that reads them when it has time.
type queue struct {
	mu    sync.Mutex // guards items
	items []item
	ready chan struct{} // holds an element while there are items
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// put adds an item and says when it came.
func (q *queue) put(i item) {
	i.at = time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, i)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns all items there are, oldest first.
func (q *queue) take() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}
