// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
)

// A drain hands over the objects that no worker has. All workers may be busy with steps that hang,
// and what the sharder moves must not wait for them. An object whose reconcile runs is left to its
// worker, and tried again when the reconcile has ended. A nil *drain is that of an engine without a
// shard.
type drain struct {
	handOver func(context.Context, types.NamespacedName) error

	mu    sync.Mutex                                                 // for all below
	taken map[types.NamespacedName]bool                              // by a reconcile or a hand-over; true if a hand-over was refused meanwhile
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName] // nil before the start
	early []types.NamespacedName                                     // asked for before the start
}

var _ source.Source = (*drain)(nil)

// drainWorkers is how many objects are handed over at once, each with one request.
const drainWorkers = 4

// take reports whether a reconcile may work on an object, until it calls release.
func (d *drain) take(key types.NamespacedName) bool {
	if d == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, taken := d.taken[key]; taken {
		return false
	}
	d.taken[key] = false
	return true
}

// takeIdle is take for a hand-over. If it is refused, the object is asked for again at the release.
func (d *drain) takeIdle(key types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, taken := d.taken[key]
	d.taken[key] = taken
	return !taken
}

func (d *drain) release(key types.NamespacedName) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	refused := d.taken[key]
	delete(d.taken, key)
	if refused {
		d.ask(key)
	}
}

// request asks for a hand-over.
func (d *drain) request(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ask(key)
}

func (d *drain) ask(key types.NamespacedName) {
	if d.queue == nil {
		d.early = append(d.early, key)
		return
	}
	d.queue.Add(key)
}

// Start implements [source.Source]: the controller starts it with its watches. Nothing of it goes
// through the queue of the controller.
func (d *drain) Start(ctx context.Context, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	context.AfterFunc(ctx, queue.ShutDown)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = queue
	for _, key := range d.early {
		queue.Add(key)
	}
	d.early = nil
	for range drainWorkers {
		go func() {
			for d.next(ctx, queue) {
			}
		}()
	}
	return nil
}

// next hands one object over, and reports whether there may be more.
func (d *drain) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName]) bool {
	key, down := queue.Get()
	if down {
		return false
	}
	defer queue.Done(key)
	if !d.takeIdle(key) {
		return true
	}
	defer d.release(key)
	switch err := d.handOver(ctx, key); {
	case err == nil:
		queue.Forget(key)
	case errors.Is(err, tenure.ErrExpired):
		queue.AddAfter(key, tenure.RequeueAfter)
	default:
		log.FromContext(ctx).Info("An object was not handed over, and it is tried again", "object", key, "why", err.Error())
		queue.AddRateLimited(key)
	}
	return true
}
