// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/rings"
	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A slow system takes 50 ms for each call.
type slow struct {
	mu    sync.Mutex // for all below
	all   map[string]bool
	calls int
	polls []time.Time // observations of what exists
}

const slowCall = 50 * time.Millisecond

func (s *slow) Connect(context.Context, *step.Request[*Silo]) (external.Client[*Silo], error) {
	return s, nil
}

func (s *slow) call(do func()) {
	time.Sleep(slowCall)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	do()
}

func (s *slow) Observe(_ context.Context, obj *Silo, id string) (seen external.Observation, err error) {
	seen = external.Observation{State: external.Absent}
	s.call(func() {
		if s.all[id] {
			seen = external.Observation{State: external.UpToDate, Owner: external.OwnerOf(obj)}
			s.polls = append(s.polls, time.Now())
		}
	})
	return seen, nil
}

func (s *slow) Create(_ context.Context, _ *Silo, creation external.Creation) (string, error) {
	s.call(func() { s.all[creation.Name] = true })
	return creation.Name, nil
}

func (s *slow) Update(context.Context, *Silo, string) error { return errors.New("there is no drift") }
func (s *slow) Delete(context.Context, *Silo, string) error { return errors.New("nothing is deleted") }

func (s *slow) counts() (all, calls int, polls []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all), s.calls, slices.Clone(s.polls)
}

// startSlow starts an operator with so many workers and objects.
func startSlow(t *testing.T, objects, workers int) *slow {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctrl.SetLogger(logr.Discard())
	server, s := apiserver.New(apiserver.Options{Now: time.Now}), &slow{all: map[string]bool{}}
	must(server.Install(silos.Definition()))
	user, err := client.New(server.Config(), client.Options{Scheme: siloScheme})
	must(err)
	must(client.IgnoreAlreadyExists(user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})))
	for i := range objects {
		must(user.Create(t.Context(), &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("s", i)}}))
	}
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		Scheme: siloScheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	must(err)
	engine, err := step.New(step.Options[*Silo]{
		Name: "silos", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Controller: controller.Options{MaxConcurrentReconciles: workers},
	}, external.New("Silo", external.Connector[*Silo](s), external.Options[*Silo]{
		Identity: byName(), Lifecycle: lifecycle.Options{Policy: policy.Defaults{Namespaces: policy.NamespacesIgnored}},
	}))
	must(err)
	must(engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Silo{})))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(<-ended)
	})
	return s
}

// All workers are busy as long as there is something to create: in virtual time, nothing but the
// calls takes time.
func TestThroughput(t *testing.T) {
	const objects, workers = 500, 10
	rings.Test(t, "takes a second")
	synctest.Test(t, func(t *testing.T) {
		s := startSlow(t, objects, workers)
		began := time.Now()
		calls, all := 0, 0
		for all < objects {
			time.Sleep(100 * time.Millisecond)
			if all, calls, _ = s.counts(); time.Since(began) > time.Hour {
				t.Fatalf("%d of %d within an hour", all, objects)
			}
		}
		perObject := float64(calls) / objects
		rate, bound := objects/time.Since(began).Seconds(), workers/(perObject*slowCall.Seconds())
		t.Logf("%.2f calls each, %.1f objects per second, bound %.1f, ratio %.3f", perObject, rate, bound, rate/bound)
		if perObject > 4.1 || rate < 0.9*bound {
			t.Errorf("%.2f calls each, %.1f objects per second, and the workers allow %.1f", perObject, rate, bound)
		}
	})
}

// Objects that an operator has found all at once, after a restart, are not polled all at once.
func TestNoHerd(t *testing.T) {
	const objects, minutes = 300, 30
	rings.Test(t, "takes a second")
	synctest.Test(t, func(t *testing.T) {
		s := startSlow(t, objects, 100) // workers do not spread the polls
		began := time.Now()
		time.Sleep(minutes * time.Minute)
		synctest.Wait()
		_, _, polls := s.counts()
		var each [minutes * 10]int // six seconds each
		for _, at := range polls {
			if i := int(at.Sub(began) / (6 * time.Second)); i < len(each) {
				each[i]++
			}
		}
		const even = objects / 10
		first, last := slices.Max(each[10:20]), slices.Max(each[len(each)-10:])
		t.Logf("polls in six seconds, at most: %d in the second minute, %d in the last, %d if they were even", first, last, even)
		if last > 2*even {
			t.Errorf("%d of %d polls come within six seconds: %v", last, objects, each[len(each)-10:])
		}
	})
}
