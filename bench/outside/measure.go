// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/bench/requests"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A measurement is what is measured, and what that has shown.
type measurement struct {
	sizes
	config   *rest.Config
	progress io.Writer

	took   time.Duration // until the last object was ready
	calls  float64       // for each object
	writes float64       // to the API server, for each object
	polls  []int         // in each tenth of a poll interval
}

// run measures an operator that starts with all objects, and then its polls.
func (m *measurement) run(ctx context.Context) error {
	namespace, err := m.create(ctx)
	if err != nil {
		return err
	}
	system, transport := newSystem(m.latency), requests.NewTransport()
	config := rest.CopyConfig(m.config)
	config.QPS = -1
	config.Wrap(transport.Wrap)
	mgr, err := m.operator(config, system)
	if err != nil {
		return err
	}
	ready, err := watchReady(ctx, mgr, namespace, m.objects)
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- mgr.Start(running) }()
	defer func() {
		cancel()
		<-ended
	}()
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		return fmt.Errorf("the operator has ended: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.took = time.Since(began)
	calls, polls := system.counts()
	counts, _ := transport.Counts()
	m.calls, m.writes = float64(calls)/float64(m.objects), float64(requests.Total(counts.Writes))/float64(m.objects)
	fmt.Fprintf(m.progress, "%d objects are ready after %s; recording polls for %s\n", m.objects, m.took.Round(time.Millisecond), time.Duration(m.periods)*m.poll)
	since := time.Now()
	select {
	case <-time.After(time.Duration(m.periods) * m.poll):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, all := system.counts()
	m.polls = histogram(all[len(polls):], since, m.poll/10, 10*m.periods)
	if n := system.duplicates(); n > 0 {
		return fmt.Errorf("%d resources were created more than once", n)
	}
	return nil
}

// create creates all objects.
func (m *measurement) create(ctx context.Context) (namespace string, err error) {
	scheme, err := widget.NewScheme()
	if err != nil {
		return "", err
	}
	config := rest.CopyConfig(m.config)
	config.QPS = -1
	user, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return "", err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "outside-"}}
	if err := user.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	fmt.Fprintf(m.progress, "creating %d objects\n", m.objects)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(20)
	for i := range m.objects {
		group.Go(func() error {
			return user.Create(ctx, &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: fmt.Sprintf("w%05d", i)}})
		})
	}
	return ns.Name, group.Wait()
}

// operator returns a manager with the operator.
func (m *measurement) operator(config *rest.Config, system *system) (ctrl.Manager, error) {
	scheme, err := widget.NewScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	engine, err := step.New(
		step.Options[*widget.Widget]{
			Name: "outside", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true,
			Controller: controller.Options{MaxConcurrentReconciles: m.workers},
		},
		external.New("Widget", external.Connector[*widget.Widget](system), external.Options[*widget.Widget]{
			Identity: external.ByName(func(obj *widget.Widget) (string, error) { return "w-" + string(obj.UID), nil }),
			Poll:     m.poll, StoresOwner: true,
			Policy: policy.Defaults{IgnoreNamespaces: true},
		}))
	if err != nil {
		return nil, err
	}
	return mgr, engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&widget.Widget{}))
}

// watchReady returns a channel that is closed when so many objects of a namespace are ready.
func watchReady(ctx context.Context, mgr ctrl.Manager, namespace string, objects int) (<-chan struct{}, error) {
	informer, err := mgr.GetCache().GetInformer(ctx, &widget.Widget{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	done, seen := make(chan struct{}), make(map[string]bool)
	note := func(obj any) {
		w, ok := obj.(*widget.Widget)
		if !ok || w.Namespace != namespace || seen[w.Name] || !meta.IsStatusConditionTrue(w.Status.Conditions, condition.Ready) {
			return
		}
		if seen[w.Name] = true; len(seen) == objects {
			close(done)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{ // one goroutine calls it
		AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) },
	})
	return done, err
}

// histogram counts times in intervals that begin at a time.
func histogram(times []time.Time, since time.Time, interval time.Duration, n int) []int {
	counts := make([]int, n)
	for _, t := range times {
		if i := int(t.Sub(since) / interval); !t.Before(since) && i < n {
			counts[i]++
		}
	}
	return counts
}

// bound returns how many objects a second the workers allow.
func (m *measurement) bound(calls float64) float64 {
	return float64(m.workers) / (calls * m.latency.Seconds())
}

// write writes what was measured.
func (m *measurement) write(w io.Writer) error {
	rate, bound := float64(m.objects)/m.took.Seconds(), m.bound(m.calls)
	total := 0
	for _, n := range m.polls {
		total += n
	}
	tenth := m.poll / 10
	last := m.polls[len(m.polls)-10:]
	even := float64(m.objects) / 10
	capacity := m.bound(1) * tenth.Seconds()
	_, err := fmt.Fprintf(w, `| what | figure |
|---|---|
| objects, workers, latency of a call | %d, %d, %s |
| calls for each object, writes to the API server | %.2f, %.2f |
| objects per second | %.1f |
| the bound: workers / (calls x latency) | %.1f |
| objects per second / bound | %.2f |
| polls in %d intervals of %s, for each object and interval | %.2f |
| most polls in a tenth of an interval / even distribution, whole time | %.2f |
| the same in the last interval | %.2f |
| most polls in a tenth of an interval / what the workers can do | %.2f |

Polls in each tenth of an interval: %v
`, m.objects, m.workers, m.latency, m.calls, m.writes, rate, bound, rate/bound,
		m.periods, m.poll, float64(total)/float64(m.objects*m.periods), float64(slices.Max(m.polls))/even,
		float64(slices.Max(last))/even, float64(slices.Max(m.polls))/capacity, m.polls)
	return err
}
