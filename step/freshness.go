// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// freshness is whether the cache was up to date with an object since the process started. It may be
// used by actions that run at the same time.
type freshness struct {
	fresh  atomic.Bool            // a write or a live read of this process has shown it
	live   atomic.Pointer[string] // a resource version that the API server has had, nil if none is known
	mu     sync.Mutex             // for asking
	asking chan struct{}          // closed when the action that asks the API server is done; nil if none asks
}

// ask waits until no other action asks the API server: the first one asks for all. The action that
// has its turn calls done. No lock is held meanwhile, so that a context can end the wait.
func (f *freshness) ask(ctx context.Context) (done func(), err error) {
	for {
		f.mu.Lock()
		other := f.asking
		if other == nil {
			own := make(chan struct{})
			f.asking = own
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.asking = nil
				close(own)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (f *freshness) reset() {
	f.fresh.Store(false)
	f.live.Store(nil)
}

func (f *freshness) set() { f.fresh.Store(true) }

func (f *freshness) isSet() bool { return f.fresh.Load() }

// sawLive notes a version that the API server has.
func (f *freshness) sawLive(version string) { f.live.Store(&version) }

// newestSeen returns the newest version that the API server is known to have, empty if none is.
func (f *freshness) newestSeen() string {
	if version := f.live.Load(); version != nil {
		return *version
	}
	return ""
}

// An epoch is the time since the first write of this process to an object of a kind, as a resource
// version. It saves the live read of an object whose version is from that time.
//
// The API server orders the resource versions of a kind by the time of their writes, whichever
// objects they belong to. So a version that is not older than one that a write of this process was
// answered with was written while this process ran: the cache does not show the object as it was for
// a former process. That an object was not in the first list of the watch does not prove as much. An
// API server may answer that list from a cache that lags, and then sends, as new, objects that a
// former process has seen, has cleaned up, and that are gone.
type epoch struct {
	mu      sync.Mutex // for version
	version string     // empty before the first write
}

// begin notes a version that a write of this process has made. Only the first one counts: it is the
// oldest, or nearly so.
func (e *epoch) begin(version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.version == "" {
		e.version = version
	}
}

// includes reports whether a version was written in the epoch, as far as versions can be compared.
func (e *epoch) includes(version string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, e.version)
	return err == nil && order >= 0
}

// older reports whether a resource version is older than another. A version that can't be compared
// is older if it is not the same.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != than
	}
	return order < 0
}
