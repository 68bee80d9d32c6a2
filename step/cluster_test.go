// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// A cluster is an API server in memory with operators that run as they do in a cluster, in virtual
// time.
type cluster struct {
	t      *testing.T
	server *apiserver.Server
	user   client.Client // writes as field manager "user"

	mu       sync.Mutex // for all below
	loops    map[string][]journal.HotLoop
	runs     map[string]int // reconciles that have run the steps
	ended    map[string]journal.Result
	requests map[string]int // of operators: "get ConfigMap"
	causes   map[string][]string

	unwatched map[string][]journal.Entry
}

func locked[T any](c *cluster, get func() T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return get()
}

// unwatchedOf returns what an operator has read of kinds that nothing watches.
func (c *cluster) unwatchedOf(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts []string
	for _, e := range c.unwatched[name] {
		texts = append(texts, e.Event.String())
	}
	return texts
}

// isAccused reports whether an operator has done so for a Thing.
func (c *cluster) isAccused(name, thing string) bool {
	return locked(c, func() bool {
		return slices.ContainsFunc(c.unwatched[name], func(e journal.Entry) bool { return e.Object.Name == thing })
	})
}

// inCluster runs a test in a cluster with a Thing, in a bubble.
func inCluster(t *testing.T, test func(c *cluster)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		c := &cluster{t: t, loops: map[string][]journal.HotLoop{}, runs: map[string]int{}, ended: map[string]journal.Result{}, requests: map[string]int{}, causes: map[string][]string{}, unwatched: map[string][]journal.Entry{}}
		c.server = apiserver.New(apiserver.Options{Now: time.Now})
		things, err := definitions.Read("testdata")
		must(t, err)
		must(t, c.server.Install(things...))
		c.user = c.as("user")
		c.must(c.user.Create(t.Context(), &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}))
		test(c)
	})
}

func runInCluster(t *testing.T, name string, test func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inCluster(t, func(c *cluster) { test(c.t, c) }) })
}

func (c *cluster) must(err error) {
	c.t.Helper()
	must(c.t, err)
}

func (c *cluster) create(objects ...client.Object) {
	c.t.Helper()
	for _, obj := range objects {
		c.must(c.user.Create(c.t.Context(), obj))
	}
}

// as returns a client of its own field manager.
func (c *cluster) as(manager string) client.Client {
	c.t.Helper()
	cl, err := client.New(c.server.Config(), client.Options{Scheme: allKinds(), FieldOwner: manager})
	c.must(err)
	return cl
}

// A distant transport takes some time for each write, so that operators that are busy let time
// pass. Reads take none: those of discovery happen under a mutex, which would stop the time of a
// bubble.
type distant struct {
	http.RoundTripper
	cluster *cluster
}

func (d distant) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		time.Sleep(5 * time.Millisecond)
	}
	if r.URL.Query().Get("watch") == "" {
		parts := strings.Split(r.URL.Path, "/")
		d.cluster.mu.Lock()
		d.cluster.requests[r.Method+" "+parts[len(parts)-1]]++
		d.cluster.mu.Unlock()
	}
	return d.RoundTripper.RoundTrip(r)
}

// An operator is an engine in a manager of its own.
type operator struct {
	name          string
	skipUnchanged bool
	steps         steps
	watch         func(b *builder.Builder) *builder.Builder
	watchWith     func(e *step.Engine[*Thing], b *builder.Builder) *builder.Builder
	namespaces    map[string]cache.Config // of the cache, all if nil
	strip         bool                    // the cache has no managed fields
	// of is the name of the only Thing that it reconciles, also when a ConfigMap changes; it is for
	// all if empty.
	of string
	// unwatched is what it declares, and logger what it logs with.
	unwatched []client.Object
	logger    logr.Logger
	// watchIn is watchWith with the cache of the manager, and watchesLater what a step watches later.
	watchIn      func(e *step.Engine[*Thing], b *builder.Builder, c cache.Cache) *builder.Builder
	watchesLater client.Object
	// unstarted has the manager not start, and the engine read without its cache.
	unstarted bool
}

// start starts an operator, which ends with the test, and returns its engine.
func (c *cluster) start(o operator) *step.Engine[*Thing] {
	c.t.Helper()
	config := rest.CopyConfig(c.server.Config())
	config.Transport = distant{config.Transport, c}
	options := ctrl.Options{
		Scheme: allKinds(), Logger: o.logger, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)},
	}
	if o.logger.GetSink() == nil {
		options.Logger = logr.Discard()
	}
	if o.strip {
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}
	options.Cache.DefaultNamespaces = o.namespaces
	mgr, err := ctrl.NewManager(config, options)
	c.must(err)
	reader := mgr.GetClient()
	if o.unstarted {
		reader = c.as("operator")
	}
	if o.watchesLater != nil {
		o.steps = append(o.steps, watching(doing("Watch", passes), step.Watch{Object: o.watchesLater, Owned: true, Later: mgr.GetCache()}))
	}
	engine, err := step.New(step.Options[*Thing]{
		Name: o.name, Client: reader, APIReader: mgr.GetAPIReader(), Observers: []journal.Observer{c.observer(o.name)}, SkipUnchanged: o.skipUnchanged,
		Unwatched: o.unwatched,
	}, o.steps...)
	c.must(err)
	mine := predicate.NewPredicateFuncs(func(obj client.Object) bool { return o.of == "" || obj.GetName() == o.of })
	b := ctrl.NewControllerManagedBy(mgr).For(&Thing{}, builder.WithPredicates(mine))
	if o.of != "" {
		b = b.Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "default", Name: o.of}}}
		}))
	}
	if o.watch != nil {
		b = o.watch(b)
	}
	if o.watchWith != nil {
		b = o.watchWith(engine, b)
	}
	if o.watchIn != nil {
		b = o.watchIn(engine, b, mgr.GetCache())
	}
	c.must(engine.Complete(b))
	if o.unstarted {
		return engine
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		must(c.t, <-ended)
	})
	return engine
}

type observerFunc func(journal.Entry)

func (f observerFunc) Observe(_ context.Context, e journal.Entry) { f(e) }

func (c *cluster) observer(name string) journal.Observer {
	return observerFunc(func(e journal.Entry) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch ev := e.Event.(type) {
		case journal.Triggered:
			c.causes[name] = append(c.causes[name], e.Object.Name+": "+ev.Cause.String())
		case journal.HotLoop:
			c.loops[name] = append(c.loops[name], ev)
		case journal.Unwatched:
			c.unwatched[name] = append(c.unwatched[name], e)
		case journal.StepBegan:
			c.runs[name]++
		case journal.Finished:
			c.ended[name] = ev.Result
		}
	})
}

// found returns the hot loops that an operator was found in.
func (c *cluster) found(name string) []journal.HotLoop {
	return locked(c, func() []journal.HotLoop { return slices.Clone(c.loops[name]) })
}

// triggered returns what has triggered reconciles of an operator.
func (c *cluster) triggered(name string) []string {
	return locked(c, func() []string { return slices.Clone(c.causes[name]) })
}

func (c *cluster) ran(name string) int {
	return locked(c, func() int { return c.runs[name] })
}

func (c *cluster) ready() string {
	c.t.Helper()
	return describe(c.thing(), condition.Ready)
}

// everySecond does something each second for some time.
func (c *cluster) everySecond(d time.Duration, do func(second int)) {
	for i := range int(d / time.Second) {
		pass(time.Second)
		if do != nil {
			do(i)
		}
	}
}

// noHotLoop fails the test if an operator was found in a hot loop.
func (c *cluster) noHotLoop(name string) {
	c.t.Helper()
	none(c.t, "found", c.found(name))
	if got := c.ready(); strings.Contains(got, step.ReasonHotLoop) {
		c.t.Errorf("Ready: %s", got)
	}
}

func owned(obj *Thing) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion(thingVersion.String()).WithKind("Thing").WithName(obj.Name).WithUID(obj.UID).WithController(true)
}

// rollOut is the status of the Deployment that its controller writes.
func (c *cluster) rollOut(replicas int) {
	d := &appsv1.Deployment{}
	if err := c.user.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: "app"}, d); err != nil {
		return
	}
	d.Status.Replicas, d.Status.ObservedGeneration = int32(replicas), d.Generation
	c.must(c.as("deployment-controller").Status().Update(c.t.Context(), d))
}

func (c *cluster) thing() *Thing {
	c.t.Helper()
	obj := &Thing{}
	c.must(c.user.Get(c.t.Context(), thingRequest.NamespacedName, obj))
	return obj
}

// requested returns how many requests there were, as "METHOD name".
func (c *cluster) requested(request string) int {
	return locked(c, func() int { return c.requests[request] })
}
