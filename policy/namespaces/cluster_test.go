// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package namespaces_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/policy/namespaces"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A cluster is an API server in memory with an operator whose step resolves the policy of each
// ConfigMap, in virtual time.
type cluster struct {
	t      *testing.T
	server *apiserver.Server
	user   client.Client

	mu       sync.Mutex        // for all below
	resolved []string          // since taken last: "prod/a: Skipped"
	causes   map[string]string // of the last reconcile of an object
	ended    map[string]journal.Result
	reads    int // from the cache
}

// A resolving is the step of the operator.
type resolving struct {
	cluster  *cluster
	defaults policy.Defaults
}

var _ step.Watcher[*corev1.ConfigMap] = resolving{}

func (resolving) Name() string            { return "Resolve" }
func (s resolving) Watches() []step.Watch { return namespaces.Watches(s.defaults) }

func (s resolving) Do(ctx context.Context, req *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	decision, err := namespaces.Resolve(ctx, req.Client, req.Object, s.defaults)
	if err != nil {
		s.cluster.note(req.Object, "error")
		return ctrlkit.RequeueIfError(err)
	}
	s.cluster.note(req.Object, decision.Reason())
	return ctrlkit.NoRequeue()
}

func (c *cluster) note(obj client.Object, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolved = append(c.resolved, client.ObjectKeyFromObject(obj).String()+": "+what)
}

// take returns what was resolved since it was called last.
func (c *cluster) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.resolved
	c.resolved = nil
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Observe implements [journal.Observer].
func (c *cluster) Observe(_ context.Context, e journal.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := e.Object.Namespace + "/" + e.Object.Name
	switch ev := e.Event.(type) {
	case journal.Started:
		texts := make([]string, len(ev.Causes))
		for i, cause := range ev.Causes {
			texts[i] = cause.String()
		}
		c.causes[name] = strings.Join(texts, ", ")
	case journal.Finished:
		c.ended[name] = ev.Result
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// inCluster runs a test in a cluster with ConfigMaps in two namespaces.
func inCluster(t *testing.T, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		c := &cluster{t: t, server: apiserver.New(apiserver.Options{Now: time.Now}), causes: map[string]string{}, ended: map[string]journal.Result{}}
		user, err := client.New(c.server.Config(), client.Options{Scheme: scheme.Scheme, FieldOwner: "user"})
		c.must(err)
		c.user = user
		for _, name := range []string{"prod", "other"} {
			c.must(user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		}
		for _, name := range []string{"prod/a", "prod/b", "other/c"} {
			c.must(user.Create(t.Context(), named(name)))
		}
		test(c)
	})
}

func named(name string) *corev1.ConfigMap {
	namespace, name, _ := strings.Cut(name, "/")
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// A counting client counts what is read.
type counting struct {
	client.Client
	cluster *cluster
}

func (c counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.cluster.mu.Lock()
	c.cluster.reads++
	c.cluster.mu.Unlock()
	return c.Client.Get(ctx, key, obj, opts...)
}

// takeReads returns the number of reads since it was called last.
func (c *cluster) takeReads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.reads = 0 }()
	return c.reads
}

// start starts the operator and returns its engine, and what stops it.
func (c *cluster) start(defaults policy.Defaults, of map[string]cache.Config) (engine *step.Engine[*corev1.ConfigMap], stop func()) {
	c.t.Helper()
	mgr, err := ctrl.NewManager(c.server.Config(), ctrl.Options{
		Scheme: scheme.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)}, Cache: cache.Options{DefaultNamespaces: of},
	})
	c.must(err)
	engine, err = step.New(step.Options[*corev1.ConfigMap]{
		Name: "resolver", Client: counting{mgr.GetClient(), c}, SkipUnchanged: true, Observers: []journal.Observer{c},
	}, resolving{c, defaults})
	c.must(err)
	c.must(engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{})))
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(stop)
	time.Sleep(5 * time.Second) // the caches synchronize
	synctest.Wait()
	return engine, stop
}

// pass lets time pass, so that all that is requested at once is done.
func pass() {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// annotate changes the annotations of an object; nil removes one.
func (c *cluster) annotate(obj client.Object, annotations map[string]any) {
	c.t.Helper()
	texts := make([]string, 0, len(annotations))
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := "null"
		if annotations[key] != nil {
			value = fmt.Sprintf("%q", annotations[key])
		}
		texts = append(texts, fmt.Sprintf("%q:%s", key, value))
	}
	patch := `{"metadata":{"annotations":{` + strings.Join(texts, ",") + `}}}`
	c.must(c.user.Patch(c.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
	pass()
}

func (c *cluster) want(what, want string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.take()); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func ctrlRequest(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(named(name))}
}
