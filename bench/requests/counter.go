// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A Counter is a proxy in front of an API server. Its requests have the permissions of the
// configuration that it was created with.
type Counter struct {
	server *httptest.Server
	next   http.Handler
	seen   chan struct{} // has room for one: there was a request

	mu      sync.Mutex // for all below
	counts  Counts
	watches map[*http.Request]context.CancelFunc
	expired map[string]bool // by path: the next watch is answered with 410 Gone
}

// Counts are requests, by verb and resource, such as "PATCH widgets/status".
type Counts struct {
	// Writes are all but those of events and leases.
	Writes map[string]int
	// Reads are all but watches and discovery.
	Reads map[string]int
	// Events are writes of events.
	Events int
	// Refused are the writes that the API server did not accept, mostly because of conflicts.
	Refused int
}

// NewCounter starts a proxy in front of an API server.
func NewCounter(config *rest.Config) (*Counter, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	c := &Counter{
		seen: make(chan struct{}, 1), watches: make(map[*http.Request]context.CancelFunc), expired: make(map[string]bool),
		counts: newCounts(),
	}
	c.next = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ModifyResponse: func(r *http.Response) error {
			c.answered(r)
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	c.server = httptest.NewServer(c)
	return c, nil
}

// Close ends the proxy and all that goes through it.
func (c *Counter) Close() {
	c.server.CloseClientConnections()
	c.server.Close()
}

// Config returns the configuration of clients of the proxy.
func (c *Counter) Config() *rest.Config { return &rest.Config{Host: c.server.URL, QPS: -1} }

// ServeHTTP counts a request and passes it on.
func (c *Counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watching := r.URL.Query().Get("watch") != ""
	if watching {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		if !c.watch(r, cancel) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`) // the client may have gone
			return
		}
		defer c.unwatch(r)
	} else {
		c.count(r)
		defer c.note()
	}
	c.next.ServeHTTP(w, r)
}

func (c *Counter) watch(r *http.Request, cancel context.CancelFunc) (ok bool) {
	c.note()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expired[r.URL.Path] {
		delete(c.expired, r.URL.Path)
		return r.URL.Query().Get("sendInitialEvents") != "" // this one starts again by itself
	}
	c.watches[r] = cancel
	return true
}

func (c *Counter) unwatch(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watches, r)
}

func (c *Counter) note() {
	select {
	case c.seen <- struct{}{}:
	default:
	}
}

func (c *Counter) count(r *http.Request) {
	defer c.note()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.add(r)
}

func newCounts() Counts {
	return Counts{Writes: make(map[string]int), Reads: make(map[string]int)}
}

// add counts a request that is no watch.
func (c *Counts) add(r *http.Request) {
	resource, named := resourceOf(r.URL.Path)
	switch {
	case isWrite(r):
		c.Writes[r.Method+" "+resource]++
	case resource == "events" && r.Method != http.MethodGet:
		c.Events++
	case resource == "" || resource == "leases":
	case named:
		c.Reads["GET "+resource]++
	default:
		c.Reads["LIST "+resource]++
	}
}

func (c *Counts) clone() Counts {
	clone := *c
	clone.Writes, clone.Reads = maps.Clone(c.Writes), maps.Clone(c.Reads)
	return clone
}

// isWrite reports whether a request is a write that counts.
func isWrite(r *http.Request) bool {
	resource, _ := resourceOf(r.URL.Path)
	return r.Method != http.MethodGet && resource != "" && resource != "leases" && resource != "events"
}

// answered counts writes that were refused.
func (c *Counter) answered(r *http.Response) {
	if r.StatusCode < http.StatusBadRequest || !isWrite(r.Request) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Refused++
}

// resourceOf returns the resource in a path, with its subresource, and whether the path names an
// object. Paths of discovery have no resource.
func resourceOf(path string) (resource string, named bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "", false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2], true
	}
	return parts[0], len(parts) == 2
}

// Take returns the counts since its last call.
func (c *Counter) Take() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	c.counts = newCounts()
	return counts
}

// AwaitWatches returns when that many watches are open.
func (c *Counter) AwaitWatches(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		open := len(c.watches)
		c.mu.Unlock()
		if open >= n {
			return nil
		}
		select {
		case <-c.seen:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d watches, there are %d: %w", n, open, ctx.Err())
		}
	}
}

// AwaitWrite returns when there was a write since the last Take.
func (c *Counter) AwaitWrite(ctx context.Context) error {
	for {
		c.mu.Lock()
		written := len(c.counts.Writes)
		c.mu.Unlock()
		if written > 0 {
			return nil
		}
		select {
		case <-c.seen:
		case <-ctx.Done():
			return fmt.Errorf("waiting for a write: %w", ctx.Err())
		}
	}
}

// AwaitQuiet returns when there was no request for d.
func (c *Counter) AwaitQuiet(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-c.seen:
			timer.Reset(d)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for quiet: %w", ctx.Err())
		}
	}
}

// Resync ends all watches and makes each start again with a list, as an API server does that no
// longer has the version of a watch. Informers then report all objects again, although none has
// changed. It returns when the watches are open again.
func (c *Counter) Resync(ctx context.Context) error {
	c.mu.Lock()
	n := len(c.watches)
	for r, cancel := range c.watches {
		c.expired[r.URL.Path] = true
		delete(c.watches, r)
		cancel()
	}
	c.mu.Unlock()
	return c.AwaitWatches(ctx, n)
}

// String lists the requests, writes first.
func (c Counts) String() string {
	var parts []string
	for _, m := range []map[string]int{c.Writes, c.Reads} {
		for _, what := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf("%d %s", m[what], what))
		}
	}
	return strings.Join(parts, ", ")
}

// Total returns the sum of counts.
func Total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}
