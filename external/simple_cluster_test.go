// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A cluster is an API server in memory with operators that run as they do in a cluster, in virtual
// time.
type cluster struct {
	t      *testing.T
	server *apiserver.Server
	user   client.Client

	mu     sync.Mutex // for all below
	writes []string   // of all operators, to Users
}

// inCluster runs a test in a cluster with a namespace "prod".
func inCluster(t *testing.T, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		c := &cluster{t: t, server: apiserver.New(apiserver.Options{Now: time.Now})}
		c.must(c.server.Install(userKind.Definition()))
		var err error
		c.user, err = client.New(c.server.Config(), client.Options{Scheme: scheme, FieldOwner: "user"})
		c.must(err)
		c.must(c.user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}))
		test(c)
	})
}

// onCluster does that in a subtest.
func onCluster(t *testing.T, name string, test func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inCluster(t, func(c *cluster) { test(c.t, c) }) })
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// A recording transport records the writes to Users: "PATCH a/status {...}".
type recording struct {
	http.RoundTripper
	cluster *cluster
}

func (r recording) RoundTrip(request *http.Request) (*http.Response, error) {
	_, name, users := strings.Cut(request.URL.Path, "/users/")
	if users && request.Method != http.MethodGet {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		r.cluster.mu.Lock()
		r.cluster.writes = append(r.cluster.writes, request.Method+" "+name+" "+string(body))
		r.cluster.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(request)
}

// takeWrites returns the writes to Users since it was called last.
func (c *cluster) takeWrites() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.writes = nil }()
	return c.writes
}

// An operator runs functions.
type operator struct {
	*recorder
	options       external.Funcs[*User] // without the functions
	plain         bool                  // it has the required functions alone
	skipUnchanged bool
	prepare       func(mgr ctrl.Manager)  // before the engine is made; may be nil
	namespaces    map[string]cache.Config // that are cached; nil is all

	engine *step.Engine[*User]
	events *events.FakeRecorder
	stop   func()
}

// start starts an operator, which ends with the test.
func (c *cluster) start(o *operator) *operator {
	c.t.Helper()
	if o.recorder == nil {
		o.recorder = newRecorder()
	}
	o.events = events.NewFakeRecorder(100)
	config := rest.CopyConfig(c.server.Config())
	config.Transport = recording{config.Transport, c}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)}, Cache: cache.Options{DefaultNamespaces: o.namespaces},
	})
	c.must(err)
	if o.prepare != nil {
		o.prepare(mgr)
	}
	o.engine, err = step.New(step.Options[*User]{
		Name: "users", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: o.events, SkipUnchanged: o.skipUnchanged,
	}, o.step())
	c.must(err)
	c.must(o.engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&User{})))
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(o.stop)
	time.Sleep(5 * time.Second) // the caches synchronize
	synctest.Wait()
	return o
}

// step returns the step of the operator.
func (o *operator) step() step.Step[*User] {
	f := o.funcs()
	if o.plain {
		f = o.required()
	}
	f.Operator, f.Policy, f.Refresh, f.Watches = o.options.Operator, o.options.Policy, o.options.Refresh, o.options.Watches
	return external.Simple("User", f)
}

// takeEvents returns the Kubernetes events since it was called last.
func (o *operator) takeEvents() (all []string) {
	for {
		select {
		case e := <-o.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// pass lets time pass, so that all that is requested at once is done.
func pass() {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// create creates a User prod/a, as a user does.
func (c *cluster) create(change ...func(obj *User)) {
	c.t.Helper()
	obj := user("prod", "a")
	for _, f := range change {
		f(obj)
	}
	c.must(c.user.Create(c.t.Context(), obj))
	pass()
}

// edit changes it.
func (c *cluster) edit(change func(obj *User)) {
	c.t.Helper()
	obj := c.get()
	change(obj)
	c.must(c.user.Update(c.t.Context(), obj))
	pass()
}

// delete deletes it.
func (c *cluster) delete() {
	c.t.Helper()
	c.must(c.user.Delete(c.t.Context(), user("prod", "a")))
	pass()
}

// get returns it, nil if it is not there.
func (c *cluster) get() *User {
	c.t.Helper()
	obj := &User{}
	if err := c.user.Get(c.t.Context(), client.ObjectKey{Namespace: "prod", Name: "a"}, obj); err != nil {
		c.must(client.IgnoreNotFound(err))
		return nil
	}
	return obj
}

// condition returns a condition of it: "False Waiting: waits for ConfigMap prod/s".
func (c *cluster) condition(kind string) string {
	c.t.Helper()
	obj := c.get()
	if obj == nil {
		return "gone"
	}
	found := meta.FindStatusCondition(obj.Status.Conditions, kind)
	if found == nil {
		return "none"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message), ": ")
}

// annotate changes an annotation of an object; an empty value removes it.
func (c *cluster) annotate(obj client.Object, key, value string) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if value == "" {
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key)
	}
	c.must(c.user.Patch(c.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
	pass()
}

func prod() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
}

// admitted gives a new object its finalizer, as an admission policy does.
func admitted(obj *User) { obj.Finalizers = []string{finalizer} }

// equal compares what was got with what is wanted.
func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
