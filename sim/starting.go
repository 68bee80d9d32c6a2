// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"runtime"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// startingCache is the cache of a manager in a simulation.
type startingCache struct {
	cache.Cache
	done <-chan struct{} // closed when the process is stopped or crashes
}

// newCache makes the cache of a manager, for the options of one.
func (p *Process) newCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, o)
	if err != nil {
		return nil, err
	}
	return &startingCache{c, p.done}, nil
}

// WaitForCacheSync ends with the process if the manager waits that starts. Its context does not end
// then, and neither does its wait: runnableGroup.Start asks again and again, without a pause,
// whether its caches have synced or its context has ended. A real one spins until they have synced,
// or until kubelet kills it. In a simulation they would never sync, as no time passes meanwhile.
// Runnables that the manager starts next stop at once.
func (c *startingCache) WaitForCacheSync(ctx context.Context) bool {
	if c.done == nil || !isCalledByManager() {
		return c.Cache.WaitForCacheSync(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	if c.Cache.WaitForCacheSync(ctx) {
		return true
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// isCalledByManager reports whether a manager that starts has called the caller, also through a cache
// that wraps this one, and not a source of a controller, whose context ends when it should.
func isCalledByManager() bool {
	callers := make([]uintptr, 6)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "controller-runtime/pkg/manager.(*runnables).Add") {
			return true
		}
		if !more {
			return false
		}
	}
}
