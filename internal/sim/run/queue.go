// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"sync"
	"time"
)

// item is a change in the cluster, or a line to show.
type item struct {
	at     time.Time
	change *Change
	source string // of the line; empty if that is a step
	line   string
}

// queue passes items from many goroutines to one, and never blocks the senders.
type queue struct {
	mu    sync.Mutex // guards items
	items []item
	ready chan struct{} // holds an element while there are items
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// put adds an item, with the present time.
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

// Write puts whole lines of the steps.
func (q *queue) Write(data []byte) (int, error) {
	for text := range strings.Lines(string(data)) {
		q.put(item{line: strings.TrimSuffix(text, "\n")})
	}
	return len(data), nil
}

// take removes and returns all items, oldest first.
func (q *queue) take() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}
