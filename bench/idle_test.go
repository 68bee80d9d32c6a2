// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// BenchmarkIdle reconciles a converged object with three children, from a warm cache: by hand, with
// all comparisons that this needs, and with an engine, which runs its steps, or skips them until an
// input changes.
func BenchmarkIdle(b *testing.B) {
	w := newWorld(b)
	var byHand float64
	for _, c := range w.contenders(b) {
		b.Run(c.name, func(b *testing.B) {
			each := w.measure(b, c)
			if c.name == "by hand" {
				byHand = each
			}
			if byHand > 0 {
				b.ReportMetric(each/byHand, "of-by-hand")
			}
		})
	}
}

// An idle engine takes a tenth of the time that the comparisons by hand take.
func TestRestTakesATenth(t *testing.T) {
	if testing.Short() {
		t.Skip("takes time")
	}
	w := newWorld(t)
	contenders := w.contenders(t)
	best := 1.0
	for range 3 { // the machine has other work, too
		each := make(map[string]float64)
		for _, c := range contenders {
			result := testing.Benchmark(func(b *testing.B) { w.measure(b, c) })
			each[c.name] = float64(result.T.Nanoseconds()) / float64(result.N)
			t.Logf("%-12s %8.0f ns, %3d allocations, %.3f of by hand", c.name, each[c.name], result.AllocsPerOp(), each[c.name]/each["by hand"])
		}
		if best = min(best, each["idle"]/each["by hand"]); best <= 0.1 {
			return
		}
	}
	t.Errorf("an idle engine takes %.3f of the time by hand, want at most 0.1", best)
}

// A world is an API server in memory, and a cache of it.
type world struct {
	client  client.Client // reads from the cache
	live    client.Client
	writes  atomic.Int64
	changed chan struct{} // has room for one: the cache has changed
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{changed: make(chan struct{}, 1)}
	server := apiserver.New(apiserver.Options{})
	crd, err := widget.Definition()
	must(tb, err)
	must(tb, server.Install(crd))
	server.OnChange(func(apiserver.Change) { w.writes.Add(1) })
	scheme, err := widget.NewScheme()
	must(tb, err)
	log.SetLogger(logr.Discard())
	reader, err := cache.New(server.Config(), cache.Options{Scheme: scheme})
	must(tb, err)
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- reader.Start(ctx) }()
	tb.Cleanup(func() {
		cancel()
		must(tb, <-ended)
	})
	for _, obj := range []client.Object{&widget.Widget{}, &corev1.ConfigMap{}} {
		informer, err := reader.GetInformer(tb.Context(), obj)
		must(tb, err)
		_, err = informer.AddEventHandler(w)
		must(tb, err)
	}
	w.client, err = client.New(server.Config(), client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: reader}})
	must(tb, err)
	w.live, err = client.New(server.Config(), client.Options{Scheme: scheme})
	must(tb, err)
	return w
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// OnAdd, OnUpdate and OnDelete handle changes of the cache.
func (w *world) OnAdd(any, bool)   { w.note() }
func (w *world) OnUpdate(any, any) { w.note() }
func (w *world) OnDelete(any)      { w.note() }

func (w *world) note() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// A contender is a reconciler and a converged object.
type contender struct {
	name       string
	reconciler reconcile.Reconciler
	request    ctrl.Request
}

func (w *world) contenders(tb testing.TB) []contender {
	tb.Helper()
	contenders := []contender{
		{name: "by hand", reconciler: &widget.CarefulByHand{Client: w.client, External: &widget.External{}}},
		{name: "always run", reconciler: w.engine(tb, false)},
		{name: "idle", reconciler: w.engine(tb, true)},
	}
	for i, name := range []string{"one", "two", "three"} {
		contenders[i].request.Namespace, contenders[i].request.Name = "default", name
		w.finish(tb, &contenders[i])
	}
	return contenders
}

func (w *world) engine(tb testing.TB, skipUnchanged bool) *step.Engine[*widget.Widget] {
	tb.Helper()
	engine, err := widget.NewEngine(step.Options[*widget.Widget]{Client: w.client, APIReader: w.live, SkipUnchanged: skipUnchanged}, &widget.External{})
	must(tb, err)
	return engine
}

// finish creates the object of a contender and reconciles it until it has converged and the cache
// has it.
func (w *world) finish(tb testing.TB, c *contender) {
	tb.Helper()
	obj := &widget.Widget{Spec: widget.Spec{First: "1", Second: "2", Third: "3"}}
	obj.Namespace, obj.Name = c.request.Namespace, c.request.Name
	must(tb, w.live.Create(tb.Context(), obj))
	timeout := time.After(30 * time.Second)
	for {
		select {
		case <-w.changed:
		case <-timeout:
			tb.Fatalf("%s: not done", c.name)
		}
		before := w.writes.Load()
		if _, err := c.reconciler.Reconcile(tb.Context(), c.request); err != nil {
			continue // a conflict: the cache is stale
		}
		if w.writes.Load() == before && w.fresh(tb, c) {
			_, err := c.reconciler.Reconcile(tb.Context(), c.request) // from here on it may skip its steps
			must(tb, err)
			return
		}
	}
}

// fresh reports whether the cache has the final versions of the object and its children.
func (w *world) fresh(tb testing.TB, c *contender) bool {
	tb.Helper()
	objects := []client.Object{&widget.Widget{}, &corev1.ConfigMap{}, &corev1.ConfigMap{}, &corev1.ConfigMap{}}
	for i, suffix := range []string{"", "-first", "-second", "-third"} {
		key := c.request.NamespacedName
		key.Name += suffix
		if err := w.live.Get(tb.Context(), key, objects[i]); err != nil {
			return false
		}
		version := objects[i].GetResourceVersion()
		if err := w.client.Get(tb.Context(), key, objects[i]); err != nil || objects[i].GetResourceVersion() != version {
			return false
		}
	}
	return objects[0].(*widget.Widget).Status.ObservedGeneration > 0 //nolint:errcheck // it is
}

// measure returns the nanoseconds of a reconcile, and fails if one writes.
func (w *world) measure(b *testing.B, c contender) float64 {
	b.Helper()
	ctx := log.IntoContext(b.Context(), logr.Discard())
	before := w.writes.Load()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.reconciler.Reconcile(ctx, c.request); err != nil {
			b.Fatal(err)
		}
	}
	if w.writes.Load() != before {
		b.Fatalf("%s: something was written", c.name)
	}
	return float64(b.Elapsed().Nanoseconds()) / float64(b.N)
}
