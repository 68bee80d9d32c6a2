// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// awaitEnd waits until ctx is done or the kind has disappeared. Until then it repeats all objects,
// if that is wanted. It does so itself, because client-go ignores the resync period of an event
// handler that is shorter than the one of an informer that runs already, and an informer starts while
// its first event handler is added.
func (f *feed) awaitEnd(ctx context.Context, lost <-chan struct{}) {
	var tick <-chan time.Time
	if f.options.Resync > 0 {
		ticker := time.NewTicker(f.options.Resync)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-lost:
			return
		case <-tick:
			f.repeat(ctx)
		}
	}
}

// repeat passes all objects to the listeners, unchanged.
func (f *feed) repeat(ctx context.Context) {
	objects, err := f.list(ctx, client.UnsafeDisableDeepCopy)
	if err != nil {
		f.log.Error(err, "Could not repeat the objects of a kind", "kind", f.key.String(), "retry", f.options.Resync)
		return
	}
	f.mu.Lock()
	all := slices.Clone(f.listeners)
	f.mu.Unlock()
	for _, obj := range objects {
		for _, l := range all {
			l.events.Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj})
		}
	}
}
