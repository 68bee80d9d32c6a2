// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"cmp"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var unmetered atomic.Bool

// DropQueueMetrics lets the controllers that this process makes from now on keep no metrics of their
// queues. It is for simulations, where no one reads them: a queue updates them twice a second, also
// when it is empty, and hours of virtual time then cost more than the reconciles in them.
func DropQueueMetrics() { unmetered.Store(true) }

// SetQueue sets what makes the queue of a controller, after [DropQueueMetrics]: a queue that differs
// from that of controller-runtime only in that it has no metrics, and logs its state only to the
// logger of the options. It leaves a controller alone that has a queue of its own, or no priority
// queue; prioritized is UsePriorityQueue of the manager.
func SetQueue(options *controller.Options, prioritized *bool) {
	if !unmetered.Load() || options.NewQueue != nil || !ptr.Deref(cmp.Or(options.UsePriorityQueue, prioritized), true) {
		return
	}
	log := options.Logger
	options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return priorityqueue.New("", func(o *priorityqueue.Opts[reconcile.Request]) { // one without a name has no metrics
			o.Log, o.RateLimiter = log.WithValues("controller", name), limiter
		})
	}
}
