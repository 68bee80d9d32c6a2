// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/step"
)

var racePairs = flag.Int("race-pairs", 50, "let so many `pairs` of a deletion and a first reconcile race, with the policy and without")

const raceFinalizer = "test.ctrlkit.dev/race"

// What the engine promises of finalizers holds on a real API server, too, which has objects go as
// soon as nothing keeps them. The policy of the last test is for all namespaces.
func TestFinalizersOnAControlPlane(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := planetest.Start(t, controlplane.Options{})
	t.Run("without the policy", func(t *testing.T) {
		t.Run("removed by hand", func(t *testing.T) {
			t.Parallel()
			testRemovedByHand(t, plane)
		})
		t.Run("race", func(t *testing.T) {
			t.Parallel()
			race := newRace(t, plane)
			// The write of the finalizer is the first that the operator sends for an object.
			race.beforeWrite = race.delete
			if lost := race.run(); lost == 0 && *racePairs >= 1000 {
				t.Error("no finalizer was lost: the race did not occur, and nothing was tested")
			}
		})
	})
	t.Run("race with the policy", func(t *testing.T) {
		installRacePolicy(t, plane)
		race := newRace(t, plane)
		// No finalizer is written, so that the first thing that the operator does for an object is
		// Do.
		race.beforeDo = race.delete
		if lost := race.run(); lost > 0 {
			t.Errorf("%d objects went although their finalizer was there from the beginning", lost)
		}
	})
}

// An object goes between the moment at which a reconcile reads it and that at which it looks what
// was lost: the reconcile works with what it has read, so that the cleanup comes after it.
func TestLostWhileRead(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	e := w.engine(full(&log, "A", passes, passes, nil))
	w.must()
	w.lag()
	last := w.thing()
	w.fault = func(string) error { // while the engine reads the cache, which still has the object
		w.fault = nil
		gone(e, last)
		return nil
	}
	w.must()
	w.catchUp()
	w.remove(newThing())
	w.removeFinalizers()
	w.must() // it was asked for by the event
	same(t, "cleanups", 1, count(log, "Cleanup A"))
}

func installRacePolicy(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	user := newRaceUser(t, plane)
	policy, binding, err := install.FinalizerPolicy(corev1.SchemeGroupVersion.WithResource("configmaps"), raceFinalizer)
	must(t, err)
	for _, obj := range []client.Object{policy, binding} {
		must(t, user.Create(t.Context(), obj))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	// The API server does not say when it has compiled a policy: one has to try.
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-"}}
		err := user.Create(ctx, probe, client.DryRunAll)
		return len(probe.Finalizers) > 0, err
	})
	if err != nil {
		t.Fatal("the policy does not work: ", err)
	}
}

// A race is a namespace of pairs, and an operator that works there. Its objects are ConfigMaps.
type race struct {
	t         *testing.T
	user      client.WithWatch
	config    *rest.Config // of the operator
	namespace string

	beforeWrite, beforeDo func(name string)

	changed chan struct{} // has room for one: something below has changed
	mu      sync.Mutex    // for all below
	pairs   map[string]*pair
	kept    map[types.UID]string // what Do has made in the external system, and for which name
}

// A pair is an object that is deleted once.
type pair struct {
	start   chan struct{} // closed when the deletion is to be sent
	started bool
	refused error // what the deletion has returned

	writing  bool // the operator is, now
	accepted bool // at least one of its writes was
	did      bool // Do was called
	gone     bool
	lost     bool // it went as if its finalizer had not been there
}

// over reports whether nothing more is going to happen, but for the cleanup.
func (p *pair) over() bool {
	return p.gone && !p.writing && (p.did || !p.accepted)
}

func newRace(t *testing.T, plane *controlplane.ControlPlane) *race {
	t.Helper()
	r := &race{
		t: t, user: newRaceUser(t, plane), config: plane.Config(),
		beforeWrite: func(string) {}, beforeDo: func(string) {},
		changed: make(chan struct{}, 1), pairs: make(map[string]*pair), kept: make(map[types.UID]string),
	}
	r.namespace = newRaceNamespace(t, r.user)
	r.config.QPS = -1
	r.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return racingTripper(func(request *http.Request) (*http.Response, error) { return r.write(next, request) })
	})
	return r
}

func newRaceUser(t *testing.T, plane *controlplane.ControlPlane) client.WithWatch {
	t.Helper()
	config := plane.Config()
	config.QPS = -1
	user, err := client.NewWithWatch(config, client.Options{Scheme: allKinds()})
	must(t, err)
	return user
}

func newRaceNamespace(t *testing.T, user client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "race-"}}
	must(t, user.Create(t.Context(), namespace))
	return namespace.Name
}

type racingTripper func(*http.Request) (*http.Response, error)

func (f racingTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// write sends a write of the operator, and notes whether it was accepted.
func (r *race) write(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch || !strings.Contains(request.URL.Path, "/configmaps/") {
		return next.RoundTrip(request)
	}
	name := path.Base(request.URL.Path)
	r.note(name, func(p *pair) { p.writing = true })
	r.beforeWrite(name)
	response, err := next.RoundTrip(request)
	r.note(name, func(p *pair) {
		p.writing = false
		p.accepted = p.accepted || err == nil && response.StatusCode == http.StatusOK
	})
	return response, err
}

// delete has the deletion of an object sent, now.
func (r *race) delete(name string) {
	r.note(name, func(p *pair) {
		if !p.started {
			p.started = true
			close(p.start)
		}
	})
}

func (r *race) note(name string, change func(*pair)) {
	r.mu.Lock()
	change(r.pairs[name])
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Name, Do and Cleanup make the race the step of its operator.
func (r *race) step() step.Step[*corev1.ConfigMap] {
	return step.Step[*corev1.ConfigMap]{Name: "Keep", Do: r.do, Cleanup: r.cleanup}
}

func (r *race) do(_ context.Context, req *step.Request[*corev1.ConfigMap]) error {
	r.beforeDo(req.Object.Name)
	r.note(req.Object.Name, func(p *pair) {
		p.did = true
		r.kept[req.Object.UID] = req.Object.Name
	})
	return nil
}

func (r *race) cleanup(_ context.Context, req *step.Request[*corev1.ConfigMap]) error {
	r.note(req.Object.Name, func(*pair) { delete(r.kept, req.Object.UID) })
	return nil
}

// run lets all pairs race, fails if something is left in the external system, and returns how many
// objects went although they had the finalizer.
func (r *race) run() (lost int) {
	r.t.Helper()
	stop := startRaceOperator(r.t, r.config, r.namespace, step.Options[*corev1.ConfigMap]{Name: "race", SkipUnchanged: true}, r.step())
	r.watch()
	for i := range *racePairs {
		name := fmt.Sprintf("pair-%d", i)
		r.mu.Lock()
		r.pairs[name] = &pair{start: make(chan struct{})}
		r.mu.Unlock()
	}
	var deletions sync.WaitGroup
	for name, p := range maps.Clone(r.pairs) {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
		deletions.Go(func() {
			select {
			case <-p.start:
			case <-r.t.Context().Done():
				return
			}
			err := r.user.Delete(r.t.Context(), obj.DeepCopy())
			r.note(name, func(p *pair) { p.refused = err })
		})
		must(r.t, r.user.Create(r.t.Context(), obj.DeepCopy()))
	}
	deletions.Wait()
	r.awaitNothingLeft()
	stop()

	r.mu.Lock()
	defer r.mu.Unlock()
	did := 0
	for name, p := range r.pairs {
		if p.refused != nil {
			r.t.Errorf("deleting %s: %v", name, p.refused)
		}
		if p.did {
			did++
		}
		if p.lost {
			lost++
		}
	}
	r.t.Logf("%d pairs: for %d Do was called, and what it made was cleaned up; %d of them were deleted at once although the finalizer was accepted",
		len(r.pairs), did, lost)
	return lost
}

// awaitNothingLeft returns when all objects are gone, and what was made for them, too.
func (r *race) awaitNothingLeft() {
	r.t.Helper()
	timeout := time.After(20 * time.Second) // a cleanup that is retried has run by then
	for {
		left, kept := r.left()
		if left+len(kept) == 0 {
			return
		}
		select {
		case <-r.changed:
		case <-timeout:
			r.t.Fatalf("%d objects are not done with, and of %d something is left outside of the cluster", left, len(kept))
		}
	}
}

func (r *race) left() (objects int, kept map[types.UID]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pairs {
		if !p.over() {
			objects++
		}
	}
	return objects, maps.Clone(r.kept)
}

// watch notes which objects are gone.
func (r *race) watch() {
	r.t.Helper()
	w, err := r.user.Watch(r.t.Context(), &corev1.ConfigMapList{}, client.InNamespace(r.namespace))
	must(r.t, err)
	r.t.Cleanup(w.Stop)
	go func() {
		for ev := range w.ResultChan() {
			if obj, ok := ev.Object.(*corev1.ConfigMap); ok && ev.Type == watch.Deleted {
				r.note(obj.Name, func(p *pair) {
					p.gone = true
					p.lost = obj.DeletionTimestamp.IsZero() && slices.Contains(obj.Finalizers, raceFinalizer)
				})
			}
		}
	}()
}

// startRaceOperator starts an operator in a namespace, and returns when it sees what happens there.
func startRaceOperator(t *testing.T, config *rest.Config, namespace string, options step.Options[*corev1.ConfigMap], s step.Step[*corev1.ConfigMap]) (stop func()) {
	t.Helper()
	manager := ctrl.Options{Scheme: allKinds(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}}
	manager.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	mgr, err := ctrl.NewManager(config, manager)
	must(t, err)
	options.Client, options.APIReader, options.Finalizer = mgr.GetClient(), mgr.GetAPIReader(), raceFinalizer
	options.Controller = controller.Options{MaxConcurrentReconciles: 4, SkipNameValidation: new(true)}
	engine, err := step.New(options, s)
	must(t, err)
	must(t, engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{})))
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache was not filled")
	}
	return func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
	}
}
