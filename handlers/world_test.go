// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/journal"
)

var projectKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Project"}

// Project is a kind with conditions whose definition tests install.
type Project = testkind.Object[ProjectSpec, ProjectStatus]

type ProjectSpec struct {
	Size   int64  `json:"size,omitempty"`
	Secret string `json:"secret,omitempty"`
}

type ProjectStatus struct {
	Size       int64              `json:"size,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	gv := projectKind.GroupVersion()
	s.AddKnownTypeWithName(projectKind, &Project{})
	s.AddKnownTypeWithName(gv.WithKind("ProjectList"), &testkind.List[ProjectSpec, ProjectStatus]{})
	metav1.AddToGroupVersion(s, gv)
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// definitionOf is the definition of a kind of the group, with any fields.
func definitionOf(kind string) *apiextensionsv1.CustomResourceDefinition {
	d := testkind.Of[ProjectSpec, ProjectStatus](kind).Definition()
	d.Name, d.Spec.Group = d.Spec.Names.Plural+"."+projectKind.Group, projectKind.Group
	return d
}

// A world is an API server in memory with a manager that has a registry, in virtual time.
type world struct {
	t        *testing.T
	ctx      context.Context
	server   *apiserver.Server
	user     client.Client
	mgr      ctrl.Manager
	registry *handlers.Registry
	ring     *journal.Ring
	stop     func() // stops the manager, and waits
	outages  outages

	mu       sync.Mutex // for all below
	calls    []string
	entries  []journal.Entry
	fault    func(r *http.Request) error // of requests of the manager, before they are sent
	requests []string                    // writes: "PATCH projects/a"
}

// inWorld runs a test in a bubble. Change may change the options of the registry.
func inWorld(t *testing.T, change func(o *handlers.Options), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		w := &world{t: t, ctx: context.WithoutCancel(t.Context()), ring: journal.NewRing(journal.RingOptions{})}
		w.server = apiserver.New(apiserver.Options{Now: time.Now})
		var err error
		w.user, err = client.New(w.server.Config(), client.Options{Scheme: newScheme(), FieldOwner: "user"})
		w.must(err)
		config := w.outages.config(w.server.Config())
		config.Transport = counting{config.Transport, w}
		w.mgr, err = ctrl.NewManager(config, ctrl.Options{
			NewCache: handlers.NewCache, Scheme: newScheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
			Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		})
		w.must(err)
		options := handlers.Options{Name: "test", Observers: []journal.Observer{w, w.ring}}
		if change != nil {
			change(&options)
		}
		w.registry, err = handlers.New(w.mgr, options)
		w.must(err)
		defer func() {
			if w.stop != nil {
				w.stop()
			}
		}()
		test(w)
	})
}

// start starts the manager, and waits until nothing happens any more.
func (w *world) start() {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.mgr.Start(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		w.stop = nil
	}
	w.settle()
}

// explain returns what the operator says of an object.
func (w *world) explain(kind, name string) string {
	answer := httptest.NewRecorder()
	explanation.Handler(w.ring).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/?namespace=default&kind="+kind+"&name="+name, nil))
	return answer.Body.String()
}

// settle lets some time pass, in which what was caused happens.
func (w *world) settle() { time.Sleep(500 * time.Millisecond) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Observe implements [journal.Observer].
func (w *world) Observe(_ context.Context, e journal.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = append(w.entries, e)
}

// call notes a call of a handler.
func (w *world) call(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, text)
}

// takeCalls returns the calls since the last time, sorted.
func (w *world) takeCalls() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	slices.Sort(calls)
	return strings.Join(calls, ", ")
}

// expect fails the test if the calls since the last time are not these.
func (w *world) expect(when, want string) {
	w.t.Helper()
	if got := w.takeCalls(); got != want {
		w.t.Errorf("%s: called %q, want %q", when, got, want)
	}
}

func (w *world) takeRequests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.requests
	w.requests = nil
	return all
}

// counting notes the writes of the manager, which take some time.
type counting struct {
	http.RoundTripper
	w *world
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.w.mu.Lock()
	fault := c.w.fault
	c.w.mu.Unlock()
	if fault != nil {
		if err := fault(r); err != nil {
			return nil, err
		}
	}
	if r.Method != http.MethodGet {
		time.Sleep(5 * time.Millisecond)
		c.w.mu.Lock()
		c.w.requests = append(c.w.requests, r.Method+" "+r.URL.Path)
		c.w.mu.Unlock()
	}
	return c.RoundTripper.RoundTrip(r)
}

func newConfigMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}}
}

func newProject(name string) *Project {
	return &Project{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

// touch changes an object.
func (w *world) touch(obj client.Object) {
	w.t.Helper()
	w.must(w.user.Get(w.ctx, client.ObjectKeyFromObject(obj), obj))
	obj.SetLabels(map[string]string{"touched": obj.GetResourceVersion()})
	w.must(w.user.Update(w.ctx, obj))
}

// noting returns a handler of ConfigMaps that notes its calls as name:object.
func (w *world) noting(name string) handlers.Handler[*corev1.ConfigMap] {
	return handlers.Handler[*corev1.ConfigMap]{Name: name, OnChange: func(_ context.Context, obj *corev1.ConfigMap) error {
		w.call(name + ":" + obj.Name)
		return nil
	}}
}

func (w *world) register(entries ...handlers.Entry) *handlers.Registration {
	w.t.Helper()
	r, err := w.registry.Register(entries...)
	w.must(err)
	return r
}

func (w *world) create(objs ...client.Object) {
	w.t.Helper()
	for _, obj := range objs {
		w.must(w.user.Create(w.ctx, obj))
	}
}

// faulty has requests of the manager first call a function, which may take its time. Their error is
// that of the function, if that is not nil.
func (w *world) faulty(fault func(r *http.Request) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

// uninstall removes the definition of a kind, after its objects.
func (w *world) uninstall(kind string) {
	w.t.Helper()
	w.must(w.user.Delete(w.ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: definitionOf(kind).ObjectMeta}))
	for w.server.Work() { // its objects are deleted, and then itself
	}
}

// state returns the state of a kind, and its message.
func (w *world) state(kind string) string {
	for _, k := range w.registry.Kinds() {
		if k.Kind.Kind == kind {
			return strings.TrimSuffix(string(k.State)+": "+k.Message, ": ")
		}
	}
	return ""
}

func newUnstructured(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}
