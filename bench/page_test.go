// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/observe"
	"github.com/ctrlkit/ctrlkit/step"
)

// pageManager is as much of a manager as observe needs.
type pageManager struct{ manager.Manager }

func (pageManager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }
func (pageManager) Add(manager.Runnable) error                              { return nil }

// BenchmarkPage reconciles widgets that change each time, with the observers of package observe: with
// the page and without a viewer, and without the page. It reports the CPU of the process and its heap
// after a collection.
func BenchmarkPage(b *testing.B) {
	for _, test := range []struct {
		name string
		with []observe.Option
	}{{"without", nil}, {"page", []observe.Option{observe.WithPage()}}} {
		b.Run(test.name, func(b *testing.B) {
			observer, err := observe.Manager(pageManager{}, test.with...)
			if err != nil {
				b.Fatal(err)
			}
			scheme, err := widget.NewScheme()
			if err != nil {
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
			act := func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }
			engine, err := step.New(step.Options[*widget.Widget]{Name: "widget", Client: c, Observers: []journal.Observer{observer}},
				step.Workflow("Run", func(*step.Request[*widget.Widget]) ctrlkit.Action {
					return ctrlkit.Sequential(ctrlkit.NewAction("First", act), ctrlkit.ParallelJoin(ctrlkit.NewAction("Second", act), ctrlkit.NewAction("Third", act)))
				}))
			if err != nil {
				b.Fatal(err)
			}
			ctx := log.IntoContext(b.Context(), logr.Discard())
			for _, w := range all { // their conditions
				if _, err := engine.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			before := cpu(b)
			for i := 0; b.Loop(); i++ {
				if _, err := engine.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(all[i%objects])}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
			runtime.GC()
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.HeapAlloc)/1e6, "heap-MB")
			runtime.KeepAlive(engine)
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
