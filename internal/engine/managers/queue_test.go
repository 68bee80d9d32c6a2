// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queues have no metrics after DropQueueMetrics, and stay what controller-runtime makes before it, and
// where the operator has chosen another one.
func TestQueueMetrics(t *testing.T) {
	t.Cleanup(func() { unmetered.Store(false) })
	own := func(name string, _ workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return priorityqueue.New[reconcile.Request](name)
	}
	options := controller.Options{}
	if SetQueue(&options, nil); options.NewQueue != nil {
		t.Error("a queue was set although its metrics are wanted")
	}
	DropQueueMetrics()
	if SetQueue(&options, new(false)); options.NewQueue != nil {
		t.Error("a priority queue was set although the manager has none")
	}
	options = controller.Options{UsePriorityQueue: new(false)}
	if SetQueue(&options, nil); options.NewQueue != nil {
		t.Error("a priority queue was set although the controller has none")
	}
	options = controller.Options{NewQueue: own}
	SetQueue(&options, nil)
	use(t, options, "of-the-operator")
	options = controller.Options{}
	SetQueue(&options, nil)
	use(t, options, "without-metrics")
	if !measured(t, "of-the-operator") || measured(t, "without-metrics") {
		t.Errorf("the queue of the operator has metrics: %t, the other one has: %t", measured(t, "of-the-operator"), measured(t, "without-metrics"))
	}
}

// use lets a request pass through the queue that options make.
func use(t *testing.T, options controller.Options, name string) {
	t.Helper()
	q := options.NewQueue(name, workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	want := reconcile.Request{}
	want.Name = name
	q.Add(want)
	if got, _ := q.Get(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// measured reports whether there is a metric of a queue.
func measured(t *testing.T, queue string) bool {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "name" && label.GetValue() == queue {
					return true
				}
			}
		}
	}
	return false
}
