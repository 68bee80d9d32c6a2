// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A slow system takes 50 ms for each call.
type slow struct {
	mu    sync.Mutex // for all below
	all   map[string]bool
	calls int
	polls []time.Time // observations of what exists

	perSecond int // calls that are taken in a second; all if it is zero
	taken     int // in this second
	second    time.Time
	refused   int
	dead      func(obj *Silo) bool // its system can't be reached; nil for none
}

const slowCall = 50 * time.Millisecond

func (s *slow) Connect(context.Context, *step.Request[*Silo]) (external.Client[*Silo], error) {
	return s, nil
}

func (s *slow) call(obj *Silo, do func()) error {
	if s.dead != nil && s.dead(obj) {
		time.Sleep(10 * time.Second)
		return errors.New("dial tcp 10.0.0.1:80: i/o timeout")
	}
	time.Sleep(slowCall)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.second) >= time.Second {
		s.second, s.taken = now, 0
	}
	if s.taken++; s.perSecond > 0 && s.taken > s.perSecond {
		s.refused++
		return errors.New("POST /silos: 429 Too Many Requests") // as a client has it without a type of its own
	}
	s.calls++
	do()
	return nil
}

func (s *slow) Observe(_ context.Context, obj *Silo, id string) (seen external.Observation, err error) {
	seen = external.Observation{State: external.Absent}
	err = s.call(obj, func() {
		if s.all[id] {
			seen = external.Observation{State: external.UpToDate, Owner: external.OwnerOf(obj)}
			s.polls = append(s.polls, time.Now())
		}
	})
	return seen, err
}

func (s *slow) Create(_ context.Context, obj *Silo, creation external.Creation) (string, error) {
	return creation.Name, s.call(obj, func() { s.all[creation.Name] = true })
}

func (s *slow) Update(context.Context, *Silo, string) error { return errors.New("there is no drift") }
func (s *slow) Delete(context.Context, *Silo, string) error { return errors.New("nothing is deleted") }

func (s *slow) counts() (all, calls int, polls []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all), s.calls, slices.Clone(s.polls)
}

// startSlow starts an operator with so many workers and objects.
func startSlow(t *testing.T, objects, workers int, s *slow) *slow {
	t.Helper()
	s.all = map[string]bool{}
	startSilos(t, siloOperator{objects: objects, workers: workers, connector: s, definition: silos.Definition()})
	return s
}

// A siloOperator is an operator of Silos "s0", "s1" and so on, with a manager.
type siloOperator struct {
	objects, workers int
	connector        external.Connector[*Silo]
	definition       *apiextensionsv1.CustomResourceDefinition
	beside           []step.Step[*Silo]                        // of the external resource, in a group with it
	events           bool                                      // are recorded
	wrap             func(http.RoundTripper) http.RoundTripper // what the operator requests; nil if it is not watched
}

// startSilos starts an operator, which ends with the test, and returns a client of its cluster.
func startSilos(t *testing.T, o siloOperator) client.Client {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctrl.SetLogger(logr.Discard())
	server := apiserver.New(apiserver.Options{Now: time.Now})
	must(server.Install(o.definition))
	user, err := client.New(server.Config(), client.Options{Scheme: siloScheme})
	must(err)
	must(client.IgnoreAlreadyExists(user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})))
	for i := range o.objects {
		must(user.Create(t.Context(), &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("s", i)}}))
	}
	config := server.Config()
	if o.wrap != nil {
		config.Transport = o.wrap(config.Transport)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: siloScheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	must(err)
	options := step.Options[*Silo]{
		Name: "silos", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true,
		Controller: controller.Options{MaxConcurrentReconciles: o.workers},
	}
	if o.events {
		options.Recorder = mgr.GetEventRecorder("silos")
	}
	silo := step.Step[*Silo](external.New("Silo", o.connector, external.Options[*Silo]{
		Identity: byName(), Policy: policy.Defaults{IgnoreNamespaces: true},
	}))
	if len(o.beside) > 0 {
		silo = step.Group("All", append([]step.Step[*Silo]{silo}, o.beside...)...)
	}
	engine, err := step.New(options, silo)
	must(err)
	must(engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Silo{})))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(<-ended)
	})
	return user
}

// All workers are busy as long as there is something to create: in virtual time, nothing but the
// calls takes time.
func TestThroughput(t *testing.T) {
	const objects, workers = 500, 10
	rings.Test(t, "takes a second")
	synctest.Test(t, func(t *testing.T) {
		s := startSlow(t, objects, workers, &slow{})
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
		if perObject > 3.1 || rate < 0.9*bound {
			t.Errorf("%.2f calls each, %.1f objects per second, and the workers allow %.1f", perObject, rate, bound)
		}
	})
}

// Objects that an operator has found all at once, after a restart, are not polled all at once.
func TestNoHerd(t *testing.T) {
	const objects, minutes = 300, 30
	rings.Test(t, "takes a second")
	synctest.Test(t, func(t *testing.T) {
		s := startSlow(t, objects, 100, &slow{}) // workers do not spread the polls
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

// A system that takes a hundred calls in a second, and answers the others with an error that nothing
// marks, is used as far as it goes, without any option.
func TestUnmarkedThrottling(t *testing.T) {
	const workers, limit = 20, 100
	rings.Test(t, "takes seconds")
	objects := 400
	if rings.Exploring() {
		objects = 2000
	}
	synctest.Test(t, func(t *testing.T) {
		s := startSlow(t, objects, workers, &slow{perSecond: limit})
		began := time.Now()
		calls, all := 0, 0
		for all < objects {
			time.Sleep(time.Second)
			if all, calls, _ = s.counts(); time.Since(began) > 10*time.Minute {
				t.Fatalf("%d of %d within ten minutes, %d calls, %d refused", all, objects, calls, s.refused)
			}
		}
		took := time.Since(began).Seconds()
		t.Logf("%.0f s, %.1f calls per second of %d, %d refused, %.2f calls each", took, float64(calls)/took, limit, s.refused, float64(calls)/float64(objects))
		if float64(calls) < 0.9*limit*took || s.refused > calls/5 {
			t.Errorf("%d calls in %.0f s, %d refused", calls, took, s.refused)
		}
	})
}

// Objects whose system can't be reached cost the others nothing but the workers that wait for it,
// without any option.
func TestOneDeadSystemOfTen(t *testing.T) {
	const objects, workers = 200, 10
	rings.Test(t, "takes a second")
	synctest.Test(t, func(t *testing.T) {
		s := startSlow(t, objects, workers, &slow{dead: func(obj *Silo) bool { return strings.HasSuffix(obj.Name, "7") }})
		time.Sleep(2 * time.Minute)
		if all, _, _ := s.counts(); all != objects*9/10 {
			t.Errorf("%d of %d resources exist", all, objects*9/10)
		}
		before, polled := time.Now(), map[bool]int{}
		time.Sleep(5 * time.Minute)
		_, _, polls := s.counts()
		for _, at := range polls {
			polled[at.After(before)]++
		}
		if want := objects * 9 / 10 * 5; polled[true] < want*85/100 {
			t.Errorf("%d polls in five minutes, want about %d", polled[true], want)
		}
	})
}
