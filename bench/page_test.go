// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	gc "runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/step"
)

// pageManager is as much of a manager as operator.Observe needs.
type pageManager struct {
	manager.Manager
	served    http.ServeMux
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	informers *informertest.FakeInformers
}

func (*pageManager) Elected() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

func (m *pageManager) GetScheme() *runtime.Scheme     { return m.scheme }
func (m *pageManager) GetRESTMapper() meta.RESTMapper { return m.mapper }
func (m *pageManager) GetCache() cache.Cache          { return m.informers }

func (m *pageManager) AddMetricsServerExtraHandler(path string, h http.Handler) error {
	m.served.Handle(path, h)
	return nil
}

func (*pageManager) Add(manager.Runnable) error { return nil }

// watchPage receives what a view sends, until the benchmark ends.
func watchPage(b *testing.B, m *pageManager) {
	server := httptest.NewServer(&m.served)
	response, err := http.Get(server.URL + view.Path + "?stream=1")
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatal(response, err)
	}
	received := make(chan struct{})
	go func() { defer close(received); _, _ = io.Copy(io.Discard, response.Body) }()
	b.Cleanup(func() { _ = response.Body.Close(); <-received; server.Close() })
}

// pageEngine returns an engine with a small workflow.
func pageEngine(b *testing.B, c client.Client, observers []journal.Observer) *step.Engine[*widget.Widget] {
	act := func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }
	engine, err := step.New(step.Options[*widget.Widget]{Name: "widget", Client: c, Observers: observers},
		step.Step[*widget.Widget]{Name: "Run", Do: step.Workflow(func(*step.Request[*widget.Widget]) ctrlkit.Action {
			return ctrlkit.Sequential(ctrlkit.NewAction("First", act), ctrlkit.ParallelJoin(ctrlkit.NewAction("Second", act), ctrlkit.NewAction("Third", act)))
		})})
	if err != nil {
		b.Fatal(err)
	}
	return engine
}

// BenchmarkPage reconciles widgets that change each time, with the observers of package operator:
// with and without the page, and with the page and a viewer at 1,000 changes per second. It reports
// the CPU of the process and its heap after a collection.
func BenchmarkPage(b *testing.B) {
	page := []operator.Option{operator.WithPage()}
	for _, test := range []struct {
		name    string
		with    []operator.Option
		pause   time.Duration // between two changes
		watched bool
	}{{"without", nil, 0, false}, {"page", page, 0, false}, {"page-1000-per-second", page, time.Millisecond, false}, {"viewer-1000-per-second", page, time.Millisecond, true}} {
		b.Run(test.name, func(b *testing.B) {
			scheme, err := widget.NewScheme()
			if err != nil {
				b.Fatal(err)
			}
			mgr := &pageManager{scheme: scheme, mapper: testrestmapper.TestOnlyStaticRESTMapper(scheme), informers: &informertest.FakeInformers{Scheme: scheme}}
			informer, err := mgr.informers.FakeInformerFor(b.Context(), &widget.Widget{})
			if err != nil {
				b.Fatal(err)
			}
			if err := operator.Observe(mgr, test.with...); err != nil {
				b.Fatal(err)
			}
			const objects = 500
			var all []client.Object
			for i := range objects {
				w := &widget.Widget{}
				w.Namespace, w.Name = "default", fmt.Sprint("w-", i)
				all = append(all, w)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithStatusSubresource(all[0]).Build()
			engine := pageEngine(b, c, operator.ObserversOf(mgr))
			ctx := log.IntoContext(b.Context(), logr.Discard())
			for _, w := range all { // their conditions
				if _, err := engine.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
					b.Fatal(err)
				}
			}
			if test.watched {
				watchPage(b, mgr)
			}
			for _, w := range all {
				informer.Add(w)
			}
			gc.GC()
			before, begun := cpu(b), time.Now()
			for i := 0; b.Loop(); i++ {
				time.Sleep(time.Until(begun.Add(time.Duration(i) * test.pause)))
				if _, err := engine.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(all[i%objects])}); err != nil {
					b.Fatal(err)
				}
				informer.Update(all[i%objects], all[i%objects])
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
			gc.GC()
			var memory gc.MemStats
			gc.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.HeapAlloc)/1e6, "heap-MB")
			gc.KeepAlive(engine)
		})
	}
}

// cpu returns the CPU time of the process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
