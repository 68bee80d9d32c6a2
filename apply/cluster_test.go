// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// A cluster is an API server, and a namespace of it for the test.
type cluster struct {
	t         tester
	ctx       context.Context
	client    client.WithWatch // of the test
	namespace string
	patience  time.Duration // how long to wait for controllers: a server in memory has none
}

// newCluster returns a cluster in memory.
func newCluster(t tester, objects ...client.Object) *cluster {
	t.Helper()
	server := apiserver.New(apiserver.Options{Seed: 1})
	if err := server.Install(shopDefinition()); err != nil {
		t.Fatalf("installing the definition: %v", err)
	}
	c := connect(t, server.Config(), metav1.NamespaceDefault)
	for _, obj := range objects {
		c.create(obj)
	}
	return c
}

// connect returns a cluster of an API server.
func connect(t tester, config *rest.Config, namespace string) *cluster {
	t.Helper()
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return &cluster{t: t, ctx: log.IntoContext(context.Background(), logr.Discard()), client: direct, namespace: namespace}
}

// create creates an object, in the namespace of the test if it has none.
func (c *cluster) create(obj client.Object) client.Object {
	c.t.Helper()
	if namespaced, err := c.client.IsObjectNamespaced(obj); err == nil && namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(c.namespace)
	}
	if err := c.client.Create(c.ctx, obj, client.FieldOwner("test")); err != nil {
		c.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
	return obj
}

// shop creates a Shop.
func (c *cluster) shop(name string) *Shop {
	c.t.Helper()
	return c.create(&Shop{ObjectMeta: metav1.ObjectMeta{Name: name}}).(*Shop)
}

// get reads an object by its name; it reports whether it exists.
func (c *cluster) get(obj client.Object, name string) bool {
	c.t.Helper()
	key := client.ObjectKey{Name: name}
	if namespaced, err := c.client.IsObjectNamespaced(obj); err == nil && namespaced {
		key.Namespace = c.namespace
		if obj.GetNamespace() != "" {
			key.Namespace = obj.GetNamespace()
		}
	}
	err := c.client.Get(c.ctx, key, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatalf("reading %T %s: %v", obj, key, err)
	}
	return err == nil
}

// patch changes an object as another client does.
func (c *cluster) patch(obj client.Object, patch string) {
	c.t.Helper()
	if obj.GetNamespace() == "" {
		if namespaced, err := c.client.IsObjectNamespaced(obj); err == nil && namespaced {
			obj.SetNamespace(c.namespace)
		}
	}
	if err := c.client.Patch(c.ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("third-party")); err != nil {
		c.t.Fatalf("patching %T %s: %v", obj, obj.GetName(), err)
	}
}

// delete deletes an object.
func (c *cluster) delete(obj client.Object) {
	c.t.Helper()
	if err := client.IgnoreNotFound(c.client.Delete(c.ctx, obj)); err != nil {
		c.t.Fatalf("deleting %T %s: %v", obj, obj.GetName(), err)
	}
}

// configMap returns the data of a ConfigMap as "a=1,b=2", and "-" if it does not exist.
func (c *cluster) configMap(name string) string {
	c.t.Helper()
	cm := &corev1.ConfigMap{}
	if !c.get(cm, name) {
		return "-"
	}
	return dataText(cm.Data)
}

func dataText(data map[string]string) string {
	var pairs []string
	for k, v := range data {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// want is what builds the set of a Shop.
type want = func(shop *Shop, set *apply.Set)

// An operator is one process of an operator of Shops: its engine, and its cache.
type operator struct {
	*cluster
	name    string // of the engine; "shops" if it is empty
	step    step.Step[*Shop]
	engine  *step.Engine[*Shop]
	want    want
	wantErr error
	events  events.EventRecorder // may be nil
	funcs   interceptor.Funcs    // what happens to its requests

	mu     sync.Mutex // for all below
	writes []string   // since it was last asked
	// validation is the field validation that the last apply has asked for.
	validation string

	watches []step.Watch // nil if its sets are found by lists
	noted   []map[client.ObjectKey]client.Object
}

// operator starts an operator. To start another one is a restart.
func (c *cluster) operator(build want, options []apply.SetOption) *operator {
	c.t.Helper()
	o := &operator{cluster: c, want: build}
	o.step = apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], set *apply.Set) error {
		if o.want != nil {
			o.want(req.Object, set)
		}
		return o.wantErr
	}, options...)
	return o.start()
}

// operatorOf starts an operator of a step.
func (c *cluster) operatorOf(s step.Step[*Shop]) *operator {
	c.t.Helper()
	o := &operator{cluster: c, step: s}
	return o.start()
}

func (o *operator) start() *operator {
	o.t.Helper()
	engine, err := step.New(step.Options[*Shop]{Name: cmp.Or(o.name, "shops"), Client: interceptor.NewClient(o.client, o.intercept()), APIReader: o.client, Recorder: o.events}, o.step)
	if err != nil {
		o.t.Fatalf("making the engine: %v", err)
	}
	o.engine = engine
	return o
}

// watch makes the operator find its objects by their watches, as step.Engine.Complete does.
func (o *operator) watch() *operator {
	o.watches = o.step.Watches()
	o.noted = make([]map[client.ObjectKey]client.Object, len(o.watches))
	for i := range o.noted {
		o.noted[i] = make(map[client.ObjectKey]client.Object)
	}
	return o
}

// notify reports what has happened since the last time to the watches.
func (o *operator) notify() {
	o.t.Helper()
	for i, w := range o.watches {
		if w.Note == nil {
			continue
		}
		gvk, err := o.client.GroupVersionKindFor(w.Object)
		if err != nil {
			o.t.Fatalf("kind of %T: %v", w.Object, err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := o.client.List(o.ctx, list); err != nil {
			o.t.Fatalf("listing %s: %v", gvk.Kind, err)
		}
		now := make(map[client.ObjectKey]client.Object)
		for j := range list.Items {
			obj := &list.Items[j]
			key := client.ObjectKeyFromObject(obj)
			now[key] = obj
			w.Note(gvk.GroupKind(), o.noted[i][key], obj)
		}
		for key, obj := range o.noted[i] {
			if now[key] == nil {
				w.Note(gvk.GroupKind(), obj, nil)
			}
		}
		o.noted[i] = now
	}
}

// reconcile reconciles a Shop once.
func (o *operator) reconcile(shop *Shop) error {
	o.t.Helper()
	o.notify()
	return o.reconcileOnly(shop)
}

// reconcileOnly reconciles a Shop while the watches have nothing to report.
func (o *operator) reconcileOnly(shop *Shop) error {
	_, err := o.engine.Reconcile(o.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shop)})
	return err
}

// settle reconciles a Shop until that writes nothing. It returns the last error.
func (o *operator) settle(shop *Shop) error {
	o.t.Helper()
	for range 20 {
		o.takeWrites()
		err := o.reconcile(shop)
		if wrote := o.takeWrites(); len(wrote) == 0 {
			return err
		}
	}
	o.t.Fatalf("it does not become idle: %v", o.reconcile(shop))
	return nil
}

// mustSettle is settle without an error.
func (o *operator) mustSettle(shop *Shop) {
	o.t.Helper()
	if err := o.settle(shop); err != nil {
		o.t.Fatalf("reconciling %s: %v", shop.Name, err)
	}
}

// takeWrites returns what the operator has written since the last call.
func (o *operator) takeWrites() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	writes := o.writes
	o.writes = nil
	return writes
}

// write does a write, and records it unless it is refused.
func (o *operator) write(verb string, obj client.Object, do func() error) error {
	gvk, err := o.client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	name := obj.GetName()
	if err := do(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writes = append(o.writes, fmt.Sprintf("%s %s %s", verb, gvk.Kind, name))
	return nil
}

// condition returns the condition of the set as text.
func (c *cluster) condition(shop *Shop) string {
	c.t.Helper()
	now := &Shop{}
	if !c.get(now, shop.Name) {
		return ""
	}
	all, err := condition.Of(now)
	if err != nil {
		c.t.Fatalf("conditions: %v", err)
	}
	for _, c := range all {
		if c.Type == "PartsReady" {
			return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
		}
	}
	return "none"
}

// testOperator returns an operator with a Shop.
func testOperator(t *testing.T, build want, options ...apply.SetOption) (*operator, *Shop) {
	t.Helper()
	c := newCluster(t)
	return c.operator(build, options), c.shop("shop")
}

// setLabel returns the label of the set of a Shop.
func setLabel(shop *Shop) string {
	return apply.Label(shopVersion.WithKind("Shop").GroupKind(), client.ObjectKeyFromObject(shop), "shops", "Parts")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
