// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/journal"
)

// BenchmarkEvent is one event of an object, from the informer through the queue of
// controller-runtime, until all handlers of its kind have been called. What one handler costs is
// the difference between two numbers of handlers.
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("handlers=%d", n), func(b *testing.B) { benchmarkEvent(b, n, Options{Name: "bench"}) })
		b.Run(fmt.Sprintf("handlers=%d,observed", n), func(b *testing.B) {
			benchmarkEvent(b, n, Options{Name: "bench", Observers: []journal.Observer{ignoring{}}})
		})
	}
}

// ignoring is an observer that keeps nothing.
type ignoring struct{}

// Observe implements [journal.Observer].
func (ignoring) Observe(context.Context, journal.Entry) {}

func benchmarkEvent(b *testing.B, handlers int, options Options) {
	ctrl.SetLogger(logr.Discard())
	server := apiserver.New(apiserver.Options{})
	user, err := client.New(server.Config(), client.Options{})
	must(b, err)
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"text": "a"}}
	must(b, user.Create(b.Context(), obj))
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		NewCache: NewCache, Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	must(b, err)
	registry, err := New(mgr, options)
	must(b, err)
	done := make(chan struct{})
	_, err = registry.Register(chain(handlers, done)...)
	must(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		must(b, <-ended)
	}()
	<-done
	k := registry.kinds[kindKey{gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap")}]
	before := obj.DeepCopy()
	before.ResourceVersion = "0"
	ev := event.UpdateEvent{ObjectOld: before, ObjectNew: obj}
	b.ReportAllocs()
	for b.Loop() {
		k.own.events.Update(ev)
		<-done
	}
}

// chain returns handlers that do nothing, the last of which reports that it is called.
func chain(n int, done chan<- struct{}) []Entry {
	all := make([]Entry, n)
	for i := range all {
		all[i] = Handler[*corev1.ConfigMap]{Name: fmt.Sprintf("handler-%02d", i), OnChange: func(context.Context, *corev1.ConfigMap) error {
			if i == n-1 {
				done <- struct{}{}
			}
			return nil
		}}
	}
	return all
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
