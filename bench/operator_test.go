// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/operators"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// idleObjects is how many objects an operator has whose heap is measured.
const idleObjects = 5000

// What is measured is a controller as it runs in a cluster, with a manager and watches.
type measured struct {
	name       string
	byHand     bool
	namespaced bool // the cache is restricted to the namespace
	observed   bool // with the observers of package operator
	always     bool // its steps run in each reconcile
	outside    bool // it keeps resources outside of the cluster, not children
}

// A running operator is one whose objects have converged.
type runningOperator struct {
	server     *sim.Server
	reconciler reconcile.Reconciler
	requests   []ctrl.Request
	writes     atomic.Int64
	stop       func()
}

// start runs an operator until n objects have converged.
func (o measured) start(tb testing.TB, n int) *runningOperator {
	tb.Helper()
	log.SetLogger(logr.Discard())
	server := sim.NewServer(sim.ServerOptions{})
	crd, err := widget.Definition()
	must(tb, err)
	must(tb, server.Install(crd))
	r := &runningOperator{server: server}
	server.OnChange(func(sim.ServerChange) { r.writes.Add(1) })
	scheme, err := widget.NewScheme()
	must(tb, err)
	options := ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}
	if o.namespaced {
		options.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}}
	}
	mgr, err := ctrl.NewManager(server.Config(), options)
	must(tb, err)
	must(tb, o.add(mgr, r))
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	r.stop = func() {
		cancel()
		must(tb, <-ended)
	}
	live, err := client.New(server.Config(), client.Options{Scheme: scheme})
	must(tb, err)
	for i := range n {
		obj := &widget.Widget{Spec: widget.Spec{First: "1", Second: "2", Third: "3"}}
		obj.Namespace, obj.Name = "default", fmt.Sprintf("widget-%d", i)
		must(tb, live.Create(tb.Context(), obj))
		r.requests = append(r.requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
	r.awaitIdle(tb)
	return r
}

// add makes the controller.
func (o measured) add(mgr ctrl.Manager, r *runningOperator) error {
	b := ctrl.NewControllerManagedBy(mgr).For(&widget.Widget{})
	workers := controller.Options{MaxConcurrentReconciles: 4}
	if o.byHand {
		r.reconciler = operators.NewCareful(mgr.GetClient())
		return b.Owns(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(&corev1.Service{}).Named("widget").WithOptions(workers).Complete(r.reconciler)
	}
	options := step.Options[*widget.Widget]{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: !o.always, Controller: workers}
	if o.observed {
		series, err := metrics.New(prometheus.NewRegistry(), metrics.Options{})
		if err != nil {
			return err
		}
		options.Observers = []journal.Observer{journal.NewRing(journal.RingOptions{}), series}
	}
	build := operators.NewSteps
	if o.outside {
		build = newExternal
	}
	engine, err := build(options)
	if err != nil {
		return err
	}
	r.reconciler = engine
	return engine.Complete(b)
}

// awaitIdle waits until nothing is written for some time, and reconciles each object twice more: an
// engine compares once before it looks nothing up any more.
func (r *runningOperator) awaitIdle(tb testing.TB) {
	tb.Helper()
	for quiet, last := 0, int64(-1); quiet < 30; { // an engine waits at most two seconds for its cache
		time.Sleep(100 * time.Millisecond) // nothing reports that an operator is idle
		if now := r.writes.Load(); now == last && now > 0 {
			quiet++
		} else {
			quiet, last = 0, now
		}
	}
	for range 2 {
		for _, request := range r.requests {
			if _, err := r.reconciler.Reconcile(log.IntoContext(tb.Context(), logr.Discard()), request); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if n := r.writes.Load(); n < int64(len(r.requests)*4) {
		tb.Fatalf("only %d writes for %d objects", n, len(r.requests))
	}
}

// operatorsInTurn are what is compared.
func operatorsInTurn() []measured {
	return []measured{
		{name: "by hand", byHand: true},
		{name: "engine, always run", always: true},
		{name: "engine"},
		{name: "engine, observed", observed: true},
		{name: "by hand, namespaced cache", byHand: true, namespaced: true},
		{name: "engine, namespaced cache", namespaced: true},
		{name: "engine, namespaced cache, observed", namespaced: true, observed: true},
	}
}

// BenchmarkIdleOperator reconciles converged objects of an operator that runs, in turn, as a storm
// of resyncs does.
func BenchmarkIdleOperator(b *testing.B) {
	byHand := make(map[bool]float64) // by whether the cache is namespaced
	for _, o := range operatorsInTurn() {
		b.Run(o.name, func(b *testing.B) {
			r := o.start(b, 100)
			defer r.stop()
			r.measure(b)
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if o.byHand {
				byHand[o.namespaced] = each
			}
			if hand := byHand[o.namespaced]; hand > 0 {
				b.ReportMetric(each/hand, "of-by-hand")
			}
		})
	}
}

// measure reconciles the objects in turn, and fails if something is written.
func (r *runningOperator) measure(b *testing.B) {
	ctx := log.IntoContext(b.Context(), logr.Discard())
	before, i := r.writes.Load(), 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.reconciler.Reconcile(ctx, r.requests[i%len(r.requests)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	if r.writes.Load() != before {
		b.Fatal("something was written")
	}
}

// BenchmarkIdleHeap measures what an operator keeps in memory for each of its idle objects, with
// the cache of the object and its three children. Run it with -benchtime 1x.
func BenchmarkIdleHeap(b *testing.B) {
	var byHand float64
	for _, o := range []measured{{name: "by hand", byHand: true}, {name: "engine"}, {name: "engine, observed", observed: true}} {
		b.Run(o.name, func(b *testing.B) {
			for b.Loop() {
				each := o.heap(b, idleObjects)
				if o.byHand {
					byHand = each
				}
				b.ReportMetric(each, "B/object")
				if byHand > 0 {
					b.ReportMetric(each/byHand, "of-by-hand")
				}
			}
		})
	}
}

// heap returns the bytes that an operator keeps for each of n objects: what is freed when it ends.
func (o measured) heap(tb testing.TB, n int) float64 {
	tb.Helper()
	r := o.start(tb, n)
	running := heapInUse()
	r.stop()
	r.reconciler, r.stop = nil, nil
	ended := heapInUse()
	runtime.KeepAlive(r) // and with it the server
	return (float64(running) - float64(ended)) / float64(n)
}

func heapInUse() uint64 {
	for range 3 { // pools are emptied by the second collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
