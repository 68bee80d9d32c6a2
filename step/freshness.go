// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// freshness is whether the cache was up to date with an object since the process started. It may be
// used by actions that run at the same time.
type freshness struct {
	asking sync.Mutex // held while the API server is asked: once for all actions of a reconcile

	mu    sync.Mutex // for all below
	fresh bool       // a write or a live read of this process has shown it
	live  string     // a resource version that the API server has had
}

func (f *freshness) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fresh, f.live = false, ""
}

func (f *freshness) set() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fresh = true
}

func (f *freshness) isSet() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fresh
}

// sawLive notes a version that the API server has.
func (f *freshness) sawLive(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = version
}

// newestSeen returns the newest version that the API server is known to have, empty if none is.
func (f *freshness) newestSeen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live
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
