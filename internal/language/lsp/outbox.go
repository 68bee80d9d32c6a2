// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bytes"
	"io"
	"sync"
)

// An outbox writes in the background, so that the server reads on while an editor does not. Two that
// both wait until the other one reads would wait forever.
type outbox struct {
	to io.Writer

	mu      sync.Mutex
	waiting bytes.Buffer
	err     error
	news    chan struct{} // has something after a write; closed by Close
	closed  bool
	done    chan struct{}
}

func newOutbox(to io.Writer) *outbox {
	o := &outbox{to: to, news: make(chan struct{}, 1), done: make(chan struct{})}
	go o.run()
	return o
}

func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return 0, io.ErrClosedPipe
	case o.err != nil:
		return 0, o.err
	}
	o.waiting.Write(p)
	select {
	case o.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *outbox) run() {
	defer close(o.done)
	for range o.news {
		o.mu.Lock()
		batch := bytes.Clone(o.waiting.Bytes())
		o.waiting.Reset()
		o.mu.Unlock()
		if _, err := o.to.Write(batch); err != nil {
			o.mu.Lock()
			o.err = err
			o.mu.Unlock()
		}
	}
}

// Close writes what waits, and ends the outbox.
func (o *outbox) Close() error {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.news)
	}
	o.mu.Unlock()
	<-o.done
	return o.err
}
