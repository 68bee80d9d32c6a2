// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
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
	requests map[string]int // of operators: "get ConfigMap"
}

// inCluster runs a test in a cluster with a Thing, in a bubble.
func inCluster(t *testing.T, test func(c *cluster)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		c := &cluster{t: t, loops: map[string][]journal.HotLoop{}, runs: map[string]int{}, requests: map[string]int{}}
		c.server = apiserver.New(apiserver.Options{Now: time.Now})
		if err := c.server.Install(definition()); err != nil {
			t.Fatal(err)
		}
		c.user = c.as("user")
		c.must(c.user.Create(t.Context(), &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}))
		test(c)
	})
}

// definition is that of Things.
func definition() *apiextensionsv1.CustomResourceDefinition {
	whole := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	conditions := apiextensionsv1.JSONSchemaProps{
		Type: "array", XListType: new("map"), XListMapKeys: []string{"type"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{"type"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text, "observedGeneration": whole,
			},
		}},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + thingVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: thingVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": whole}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size": whole, "observedGeneration": whole, "conditions": conditions,
							"counters": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &whole}},
						}},
					},
				}},
			}},
		},
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func clusterScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(thingVersion, &Thing{}, &ThingList{})
	metav1.AddToGroupVersion(s, thingVersion)
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// as returns a client of its own field manager.
func (c *cluster) as(manager string) client.Client {
	c.t.Helper()
	cl, err := client.New(c.server.Config(), client.Options{Scheme: clusterScheme(), FieldOwner: manager})
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
	steps         []step.Step[*Thing]
	watch         func(b *builder.Builder) *builder.Builder
	strip         bool // the cache has no managed fields
	// of is the name of the only Thing that it reconciles, also when a ConfigMap changes; it is for
	// all if empty.
	of string
}

// start starts an operator, which ends with the test.
func (c *cluster) start(o operator) {
	c.t.Helper()
	config := rest.CopyConfig(c.server.Config())
	config.Transport = distant{config.Transport, c}
	options := ctrl.Options{
		Scheme: clusterScheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)},
	}
	if o.strip {
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}
	mgr, err := ctrl.NewManager(config, options)
	c.must(err)
	engine, err := step.New(step.Options[*Thing]{
		Name: o.name, Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Observers: []journal.Observer{c.observer(o.name)}, SkipUnchanged: o.skipUnchanged,
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
	c.must(engine.Complete(b))
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
}

type observerFunc func(journal.Entry)

func (f observerFunc) Observe(_ context.Context, e journal.Entry) { f(e) }

func (c *cluster) observer(name string) journal.Observer {
	return observerFunc(func(e journal.Entry) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch ev := e.Event.(type) {
		case journal.HotLoop:
			c.loops[name] = append(c.loops[name], ev)
		case journal.StepBegan:
			c.runs[name]++
		}
	})
}

// found returns the hot loops that an operator was found in.
func (c *cluster) found(name string) []journal.HotLoop {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.loops[name])
}

func (c *cluster) ran(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[name]
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

// calm fails the test if an operator was found in a hot loop.
func (c *cluster) calm(name string) {
	c.t.Helper()
	if loops := c.found(name); len(loops) > 0 {
		c.t.Errorf("%d hot loops, the first is %v", len(loops), loops[0])
	}
	if got := c.ready(); strings.Contains(got, step.ReasonHotLoop) {
		c.t.Errorf("Ready: %s", got)
	}
}

func owned(obj *Thing) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion(thingVersion.String()).WithKind("Thing").WithName(obj.Name).WithUID(obj.UID).WithController(true)
}

// applyThree applies three children, without reading them.
func applyThree(req *step.Request[*Thing]) (ctrl.Result, error) {
	labels := map[string]string{"app": req.Object.Name}
	children := []runtime.ApplyConfiguration{
		corev1ac.ConfigMap("config", "default").WithOwnerReferences(owned(req.Object)).WithData(map[string]string{"size": fmt.Sprint(req.Object.Spec.Size)}),
		corev1ac.Service("service", "default").WithOwnerReferences(owned(req.Object)).
			WithSpec(corev1ac.ServiceSpec().WithSelector(labels).WithPorts(corev1ac.ServicePort().WithPort(80))),
		appsv1ac.Deployment("app", "default").WithOwnerReferences(owned(req.Object)).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
				corev1ac.Container().WithName("main").WithImage("nginx:1"))))),
	}
	for _, child := range children {
		if err := req.Client.Apply(context.Background(), child, client.ForceOwnership); err != nil {
			return ctrlkit.RequeueIfError(err)
		}
	}
	return ctrlkit.RequeueAfter(10 * time.Second)
}

func watchThree(b *builder.Builder) *builder.Builder {
	return b.Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).Owns(&appsv1.Deployment{})
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

// An operator that applies its children in every reconcile is in no hot loop, also while they
// change by themselves.
func TestAppliesInEveryReconcile(t *testing.T) {
	tests := []struct {
		name string
		read bool
	}{
		{"without reading them", false},
		{"after reading them", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				c.start(operator{name: "things", watch: watchThree, steps: []step.Step[*Thing]{
					doing("Apply", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
						if test.read {
							for name, obj := range map[string]client.Object{"config": &corev1.ConfigMap{}, "service": &corev1.Service{}, "app": &appsv1.Deployment{}} {
								if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, obj); client.IgnoreNotFound(err) != nil {
									return ctrlkit.RequeueIfError(err)
								}
							}
						}
						return applyThree(req)
					}),
				}})
				deleted := configMap("config", nil)
				c.everySecond(time.Hour, func(second int) {
					if second%10 == 0 || second < 60 {
						c.rollOut(second % 7)
					}
					if second == 1800 {
						c.must(c.user.Delete(t.Context(), deleted))
					}
				})
				c.calm("things")
				c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(deleted), &corev1.ConfigMap{}))
				if got := c.ran("things"); got < 400 {
					t.Errorf("the step ran %d times in an hour, want at every change of a child", got)
				}
				if got := c.requested("GET app"); test.read && got > 0 || got > 400 {
					t.Errorf("%d live reads of a child that changes every second", got)
				}
			})
		})
	}
}

// What is applied and was as wanted already is no write: the object rests, but not when the child
// changes.
func TestAnApplyThatChangesNothingMayRest(t *testing.T) {
	tests := []struct {
		name  string
		read  bool // from a cache of the type
		rests bool
	}{
		{"with a cache", true, true},
		{"without a cache nothing would show that the child changes", false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				c.start(operator{name: "things", skipUnchanged: true, watch: watchThree, steps: []step.Step[*Thing]{
					doing("Apply", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
						if test.read {
							if err := req.Client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("elsewhere")); err != nil {
								return ctrlkit.RequeueIfError(err)
							}
						}
						return ctrlkit.RequeueIfError(req.Client.Apply(ctx, corev1ac.ConfigMap("config", "default").
							WithOwnerReferences(owned(req.Object)).WithData(map[string]string{"a": "b"}), client.ForceOwnership))
					}),
				}})
				pass(time.Minute)
				before := c.ran("things")
				bystander := configMap("bystander", nil)
				bystander.OwnerReferences = []metav1.OwnerReference{{APIVersion: thingVersion.String(), Kind: "Thing", Name: "a", UID: c.thing().UID, Controller: new(true)}}
				c.must(c.user.Create(t.Context(), bystander))
				pass(time.Minute)
				if rested := c.ran("things") == before; rested != test.rests {
					t.Errorf("it rested: %v, want %v", rested, test.rests)
				}
				child := configMap("config", nil)
				c.must(c.user.Delete(t.Context(), child))
				pass(time.Minute)
				c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(child), child))
			})
		})
	}
}

func (c *cluster) thing() *Thing {
	c.t.Helper()
	obj := &Thing{}
	c.must(c.user.Get(c.t.Context(), thingRequest.NamespacedName, obj))
	return obj
}

// An operator that deletes a child in every reconcile until it has gone is in no hot loop.
func TestPollsATerminatingChild(t *testing.T) {
	for _, read := range []bool{false, true} {
		t.Run(fmt.Sprintf("read first: %v", read), func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				child := configMap("child", nil)
				child.Finalizers = []string{"example.com/kept"}
				c.must(c.user.Create(t.Context(), child))
				c.start(operator{name: "things", steps: []step.Step[*Thing]{
					doing("Delete", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
						obj := configMap("child", nil)
						if read {
							if err := req.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
								return ctrlkit.RequeueIfError(client.IgnoreNotFound(err))
							}
						}
						if err := req.Client.Delete(ctx, obj); err != nil {
							return ctrlkit.RequeueIfError(client.IgnoreNotFound(err))
						}
						return ctrlkit.PollFor("the child to go", 2*time.Second)
					}),
				}})
				c.everySecond(time.Hour, nil)
				c.calm("things")
				if got := c.ran("things"); got < 1700 {
					t.Errorf("it was looked at %d times in an hour, want every two seconds", got)
				}
				if got := c.requested("GET child"); got > 100 {
					t.Errorf("%d live reads of the child", got)
				}
			})
		})
	}
}

// requested returns how many requests there were, as "METHOD name".
func (c *cluster) requested(request string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[request]
}

// An operator that replaces a child every 20 seconds, and keeps in its status what is active, is in
// no hot loop.
func TestReplacesChildren(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start(operator{name: "things", watch: watchThree, steps: []step.Step[*Thing]{
			doing("Replace", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
				child := configMap("child", nil)
				err := req.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
				switch {
				case apierrors.IsNotFound(err):
					child = configMap("child", map[string]string{"a": "b"})
					if err := controllerutil.SetControllerReference(req.Object, child, clusterScheme()); err != nil {
						return ctrl.Result{}, err
					}
					req.Object.Status.Counters = map[string]int{"active": 1}
					return ctrlkit.RequeueIfError(req.Client.Create(ctx, child))
				case err != nil:
					return ctrl.Result{}, err
				case req.Now.Sub(child.CreationTimestamp.Time) < 20*time.Second:
					return ctrlkit.RequeueAfter(20*time.Second - req.Now.Sub(child.CreationTimestamp.Time))
				}
				req.Object.Status.Counters = nil
				return ctrlkit.RequeueIfError(req.Client.Delete(ctx, child))
			}),
		}})
		c.everySecond(time.Hour, nil)
		c.calm("things")
		if got := c.requested("DELETE child"); got < 150 {
			t.Errorf("replaced %d times in an hour", got)
		}
	})
}

// Two operators that write different values to one field: each reports the other.
func TestTwoOperatorsFight(t *testing.T) {
	update := func(value string) doFunc {
		return func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			cm := configMap("shared", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return ctrlkit.RequeueIfError(err)
			}
			if cm.Data["tier"] == value {
				return ctrlkit.NoRequeue()
			}
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "at", time.Now().String()) // its own business
			cm.Data["tier"] = value
			return ctrlkit.RequeueIfError(req.Client.Update(ctx, cm))
		}
	}
	apply := func(value string) doFunc {
		return func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Apply(ctx, corev1ac.ConfigMap("shared", "default").WithData(map[string]string{"tier": value}), client.ForceOwnership))
		}
	}
	patch := func(value string) doFunc {
		return func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("shared", nil), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"tier":%q}}`, value))))
		}
	}
	tests := []struct {
		name        string
		left, right func(value string) doFunc
		strip       bool
	}{
		{"both update", update, update, false},
		{"both update, and no managed fields are cached", update, update, true},
		{"one updates, and one applies", update, apply, false},
		{"both apply without reading", apply, apply, false},
		{"both patch without reading", patch, patch, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				shared := configMap("shared", map[string]string{"tier": "", "other": "x"})
				c.must(c.as("bystander").Create(t.Context(), shared))
				c.must(c.user.Create(t.Context(), &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}))
				c.start(operator{name: "left", of: "a", strip: test.strip, steps: []step.Step[*Thing]{doing("Write", test.left("left"))}})
				c.start(operator{name: "right", of: "b", strip: test.strip, steps: []step.Step[*Thing]{doing("Write", test.right("right"))}})
				pass(time.Minute)
				if len(c.found("left"))+len(c.found("right")) == 0 {
					t.Error("nothing was found within a minute")
				}
				pass(2 * time.Minute) // who does not read what it writes needs longer, while the other is slowed down
				for name, other := range map[string]string{"left": "right", "right": "left"} {
					found := c.found(name)
					if len(found) == 0 {
						t.Errorf("%s: nothing was found", name)
						continue
					}
					if diff := cmp.Diff([]string{".data.tier"}, found[0].Fields); diff != "" {
						t.Errorf("fields of %s (-want +got):\n%s", name, diff)
					}
					if diff := cmp.Diff([]string{other}, found[0].Managers); diff != "" {
						t.Errorf("managers of %s (-want +got):\n%s", name, diff)
					}
				}
			})
		})
	}
}

// ownChild returns a ConfigMap that a Thing owns.
func ownChild(obj *Thing, name string, data map[string]string) *corev1.ConfigMap {
	cm := configMap(name, data)
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: thingVersion.String(), Kind: "Thing", Name: obj.Name, UID: obj.UID, Controller: new(true)}}
	return cm
}

// What looks like a hot loop, and is none.
func TestLegitimateWrites(t *testing.T) {
	merge := func(format string, args ...any) client.Patch {
		return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, args...))
	}
	every := func(d time.Duration, do func(ctx context.Context, req *step.Request[*Thing], n int) error) doFunc {
		n, last := 0, time.Time{}
		return func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			if wait := d - req.Now.Sub(last); wait > 0 {
				return ctrlkit.RequeueAfter(wait)
			}
			n, last = n+1, req.Now
			if err := do(ctx, req, n); err != nil {
				return ctrlkit.RequeueIfError(err)
			}
			return ctrlkit.RequeueAfter(d)
		}
	}
	tests := []struct {
		name string
		do   doFunc
		// others do something after each second.
		others func(c *cluster, second int)
	}{
		{"a value of the status that we change to and fro", every(5*time.Second, func(_ context.Context, req *step.Request[*Thing], n int) error {
			req.Object.Status.Size = n % 2
			return nil
		}), nil},
		{"a label of a child that we change to and fro in one reconcile", every(5*time.Second, func(ctx context.Context, req *step.Request[*Thing], _ int) error {
			for _, value := range []string{"a", "b"} {
				if err := req.Client.Patch(ctx, configMap("child", nil), merge(`{"metadata":{"labels":{"x":%q}}}`, value)); err != nil {
					return err
				}
			}
			return nil
		}), nil},
		{"a request that another controller takes away when it has served it", every(10*time.Second, func(ctx context.Context, req *step.Request[*Thing], n int) error {
			cm := configMap("child", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}
			return req.Client.Patch(ctx, cm, merge(`{"metadata":{"annotations":{"restart":"now"}}}`))
		}), func(c *cluster, _ int) {
			cm := configMap("child", nil)
			c.must(c.user.Get(c.t.Context(), client.ObjectKeyFromObject(cm), cm))
			if cm.Annotations["restart"] != "" {
				c.must(c.user.Patch(c.t.Context(), cm, merge(`{"metadata":{"annotations":{"restart":null}}}`)))
			}
		}},
		{"a child that others change elsewhere", every(5*time.Second, func(ctx context.Context, req *step.Request[*Thing], _ int) error {
			return req.Client.Patch(ctx, configMap("child", nil), merge(`{"data":{"size":"ours"}}`))
		}), func(c *cluster, second int) {
			c.must(c.user.Patch(c.t.Context(), configMap("child", nil), merge(`{"data":{"other":"%d"}}`, second)))
		}},
		{"different JSON patches", every(5*time.Second, func(ctx context.Context, req *step.Request[*Thing], n int) error {
			return req.Client.Patch(ctx, configMap("child", nil), client.RawPatch("application/json-patch+json", fmt.Appendf(nil, `[{"op":"add","path":"/data","value":{"n":"%d"}}]`, n)))
		}), nil},
		{"deletions that match nothing", every(5*time.Second, func(ctx context.Context, req *step.Request[*Thing], _ int) error {
			for i := range 6 {
				if err := req.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"n": fmt.Sprint(i)}); err != nil {
					return err
				}
			}
			return client.IgnoreNotFound(req.Client.Delete(ctx, configMap("absent", nil)))
		}), nil},
		{"dry runs", every(5*time.Second, func(ctx context.Context, req *step.Request[*Thing], _ int) error {
			return req.Client.Patch(ctx, configMap("child", nil), merge(`{"data":{"size":"dry"}}`), client.DryRunAll)
		}), nil},
		{"a field that another client has changed back twice", every(5*time.Second, func(ctx context.Context, req *step.Request[*Thing], _ int) error {
			return req.Client.Patch(ctx, configMap("child", nil), merge(`{"data":{"size":"ours"}}`))
		}), func(c *cluster, second int) {
			if second == 20 || second == 40 {
				c.must(c.user.Patch(c.t.Context(), configMap("child", nil), merge(`{"data":{"size":"theirs"}}`)))
			}
		}},
		{"a roll-out in small steps", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			cm := configMap("child", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return ctrlkit.RequeueIfError(err)
			}
			_, err := fmt.Sscan(cm.Data["ready"], &req.Object.Status.Size)
			return ctrlkit.RequeueIfError(err)
		}, func(c *cluster, second int) {
			for i := range 200 { // faster than the operator writes its status
				if second > 1 {
					return
				}
				c.must(c.user.Patch(c.t.Context(), configMap("child", nil), merge(`{"data":{"ready":"%d"}}`, 200*second+i)))
				pass(3 * time.Millisecond)
			}
		}},
		{"many children, one in each reconcile", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			list := &corev1.ConfigMapList{}
			if err := req.Client.List(ctx, list, client.InNamespace("default")); err != nil || len(list.Items) > 150 {
				return ctrlkit.RequeueIfError(err)
			}
			req.Object.Status.Size = len(list.Items)
			return ctrlkit.RequeueIfError(req.Client.Create(ctx, ownChild(req.Object, fmt.Sprintf("child-%d", len(list.Items)), nil)))
		}, nil},
		{"phases, one in each reconcile", changing(func(obj *Thing) { obj.Status.Size = min(obj.Status.Size+1, 40) }), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				c.must(c.user.Create(t.Context(), ownChild(c.thing(), "child", map[string]string{"size": "", "ready": "0"})))
				c.start(operator{name: "things", watch: func(b *builder.Builder) *builder.Builder { return b.Owns(&corev1.ConfigMap{}) }, steps: []step.Step[*Thing]{doing("Write", test.do)}})
				c.everySecond(10*time.Minute, func(second int) {
					if test.others != nil {
						test.others(c, second)
					}
				})
				c.calm("things")
				if got := c.ran("things"); got < 30 {
					t.Errorf("the step ran %d times", got)
				}
			})
		})
	}
}

// What is a hot loop, and who is named.
func TestFightsAreNamed(t *testing.T) {
	merge := func(format string, args ...any) client.Patch {
		return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, args...))
	}
	child := configMap("child", nil)
	tests := []struct {
		name  string
		do    doFunc
		spoil func(c *cluster) error // each second
		strip bool
		want  string // in Ready
		by    []string
	}{
		{"a field of a child", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("child", nil), merge(`{"data":{"size":"ours"}}`)))
		}, func(c *cluster) error {
			return c.as("helm").Patch(c.t.Context(), configMap("child", nil), merge(`{"data":{"size":"theirs"}}`))
		}, false, `.data.size of ConfigMap default/child is written again and again: field manager "helm" writes it too, stop one of the two`, []string{"helm"}},
		{"a field of a child, with a JSON patch", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("child", nil), client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/metadata/labels/example.com~1tier","value":"ours"}]`))))
		}, func(c *cluster) error {
			return c.as("helm").Patch(c.t.Context(), configMap("child", nil), merge(`{"metadata":{"labels":{"example.com/tier":"theirs"}}}`))
		}, false, `.metadata.labels[example.com/tier] of ConfigMap default/child is written again and again: field manager "helm"`, []string{"helm"}},
		{"a field that is taken away, which leaves no manager", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("child", nil), merge(`{"data":{"size":"ours"}}`)))
		}, func(c *cluster) error {
			return c.as("helm").Patch(c.t.Context(), configMap("child", nil), merge(`{"data":{"size":null}}`))
		}, false, `.data.size of ConfigMap default/child is written again and again: another client undoes it, which the managed fields do not name`, nil},
		{"a second copy of the operator", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("child", nil), merge(`{"data":{"size":"ours"}}`)))
		}, func(c *cluster) error {
			return c.as("things").Patch(c.t.Context(), configMap("child", nil), merge(`{"data":{"size":"theirs"}}`))
		}, false, `field manager "things" writes it too, which is the name of this controller`, []string{"things"}},
		{"a value of the status, which the manager of the spec does not write", changing(func(obj *Thing) { obj.Status.Counters = map[string]int{"active": 1} }), func(c *cluster) error {
			return c.as("meddler").Status().Patch(c.t.Context(), c.thing(), merge(`{"status":{"counters":{"active":7}}}`))
		}, true, `.status.counters.active of Thing default/a is written again and again: field manager "meddler" writes it too`, []string{"meddler"}},
		{"a condition, also when its time moves", changing(func(obj *Thing) {}), func(c *cluster) error {
			obj := c.thing()
			for i := range obj.Status.Conditions {
				if obj.Status.Conditions[i].Type == condition.Ready {
					obj.Status.Conditions[i].Status, obj.Status.Conditions[i].LastTransitionTime = metav1.ConditionUnknown, metav1.Now()
				}
			}
			return c.as("meddler").Status().Update(c.t.Context(), obj)
		}, true, `.status.conditions[Ready] of Thing default/a is written again and again: field manager "meddler" writes it too`, []string{"meddler"}},
		{"a list of which another manager owns an item that is not disputed", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("child", nil), merge(`{"metadata":{"finalizers":["example.com/kept","example.com/ours"]}}`)))
		}, func(c *cluster) error {
			return c.as("helm").Patch(c.t.Context(), configMap("child", nil), merge(`{"metadata":{"finalizers":["example.com/kept"]}}`))
		}, false, `.metadata.finalizers of ConfigMap default/child is written again and again: another client undoes it`, nil},
		{"a child that is deleted", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(client.IgnoreAlreadyExists(req.Client.Create(ctx, ownChild(req.Object, "child", nil))))
		}, func(c *cluster) error { return c.as("reaper").Delete(c.t.Context(), child) }, false,
			"ConfigMap default/child is created again and again: another client deletes it", nil},
		{"a child that is deleted, and applied again", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Apply(ctx, corev1ac.ConfigMap("child", "default").WithOwnerReferences(owned(req.Object))))
		}, func(c *cluster) error { return c.as("reaper").Delete(c.t.Context(), child) }, false,
			"ConfigMap default/child is created again and again: another client deletes it", nil},
		{"a child that is created", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			cm := configMap("child", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return ctrlkit.RequeueIfError(client.IgnoreNotFound(err))
			}
			return ctrlkit.RequeueIfError(req.Client.Delete(ctx, cm))
		}, func(c *cluster) error {
			return c.as("helm").Create(c.t.Context(), ownChild(c.thing(), "child", map[string]string{"a": "b"}))
		}, false,
			`ConfigMap default/child is deleted again and again: field manager "helm" creates it, stop one of the two`, []string{"helm"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				mine := ownChild(c.thing(), "child", map[string]string{"size": "", "other": "x"})
				mine.Labels = map[string]string{"a": "b"}
				if strings.Contains(test.want, "finalizers") {
					mine.Finalizers = []string{"example.com/kept"}
				}
				c.must(c.as("bystander").Create(t.Context(), mine))
				c.start(operator{name: "things", strip: test.strip, watch: func(b *builder.Builder) *builder.Builder { return b.Owns(&corev1.ConfigMap{}) }, steps: []step.Step[*Thing]{doing("Write", test.do)}})
				c.everySecond(time.Minute, func(int) {
					if len(c.found("things")) == 0 {
						_ = test.spoil(c) // while the operator has not written, there may be nothing to spoil
					}
				})
				found := c.found("things")
				if len(found) == 0 {
					t.Error("nothing was found")
					return
				}
				if diff := cmp.Diff(test.by, found[0].Managers); diff != "" {
					t.Errorf("managers (-want +got):\n%s", diff)
				}
				if got := c.ready(); !strings.Contains(got, "False HotLoop: ") || !strings.Contains(got, test.want) {
					t.Errorf("Ready: got %q, want %q in it", got, test.want)
				}
			})
		})
	}
}

// A step that writes another value into a child each time makes the event of the next reconcile,
// too.
func TestEchoesThroughAChild(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.must(c.user.Create(t.Context(), ownChild(c.thing(), "child", map[string]string{"a": "b"})))
		c.start(operator{name: "things", watch: func(b *builder.Builder) *builder.Builder { return b.Owns(&corev1.ConfigMap{}) }, steps: []step.Step[*Thing]{
			doing("Write", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
				patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"at":"%d"}}`, req.Now.UnixNano()))
				return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("child", nil), patch))
			}),
		}})
		pass(time.Minute)
		if got := c.found("things"); len(got) == 0 || !slices.Equal(got[0].Fields, []string{".data.at"}) {
			t.Errorf("found %v", got)
		}
		if got := c.ran("things"); got > 200 {
			t.Errorf("the step ran %d times in a minute", got)
		}
	})
}

// A step that asks for the next reconcile itself makes no echo, however soon, also if no event of
// its own writes comes back.
func TestAPollIsNoEcho(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		w.engine(doing("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			req.Object.Status.Size++
			return ctrlkit.RequeueAfter(100 * time.Millisecond)
		}))
		for range 200 {
			pass(w.must().RequeueAfter)
		}
		if found := heard[journal.HotLoop](w); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	})
}

// While a hot loop is slowed down, a pause is seen at once, as a change of the spec and a deletion
// are.
func TestAPauseIsNotSlowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		w.engine(doing("A", labelling(func(*Thing) string { return "ours" })))
		for range 12 {
			w.must()
			w.edit(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "tier", "theirs") })
		}
		if len(heard[journal.HotLoop](w)) == 0 {
			t.Fatal("there is no hot loop")
		}
		w.edit(func(obj *Thing) { metav1.SetMetaDataAnnotation(&obj.ObjectMeta, step.PauseAnnotation, "true") })
		w.must()
		if got := w.lastResult(); got != journal.ResultPaused {
			t.Errorf("the reconcile ended as %q, want %q", got, journal.ResultPaused)
		}
		if got := w.conditionOf(condition.Paused); !strings.HasPrefix(got, "True Paused") {
			t.Errorf("Paused: %q", got)
		}
	})
}

// Every write of a step carries the name of the engine, unless the step names another field owner.
func TestWritesCarryTheFieldOwner(t *testing.T) {
	tests := []struct {
		name  string
		write func(ctx context.Context, c client.Client, obj *Thing) error
		of    client.Object
	}{
		{"create", func(ctx context.Context, c client.Client, _ *Thing) error {
			return c.Create(ctx, configMap("new", map[string]string{"a": "b"}))
		}, configMap("new", nil)},
		{"update", func(ctx context.Context, c client.Client, _ *Thing) error {
			cm := configMap("child", nil)
			if err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}
			cm.Data = map[string]string{"a": "b"}
			return c.Update(ctx, cm)
		}, configMap("child", nil)},
		{"patch", func(ctx context.Context, c client.Client, _ *Thing) error {
			return c.Patch(ctx, configMap("child", nil), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"b"}}`)))
		}, configMap("child", nil)},
		{"apply", func(ctx context.Context, c client.Client, _ *Thing) error {
			return c.Apply(ctx, corev1ac.ConfigMap("child", "default").WithData(map[string]string{"a": "b"}))
		}, configMap("child", nil)},
		{"update of the status", func(ctx context.Context, c client.Client, obj *Thing) error {
			b := &Thing{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "b"}, b); err != nil {
				return err
			}
			b.Status.Size = 3
			return c.Status().Update(ctx, b)
		}, &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}},
		{"patch of the status", func(ctx context.Context, c client.Client, obj *Thing) error {
			b := &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
			return c.Status().Patch(ctx, b, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"size":3}}`)))
		}, &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				// Without a field there would be no managed fields, and then the API server tracks
				// none until something is applied.
				c.must(c.user.Create(t.Context(), configMap("child", map[string]string{"x": "y"})))
				c.must(c.user.Create(t.Context(), &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}))
				c.start(operator{name: "things", of: "a", steps: []step.Step[*Thing]{doing("Write", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
					return ctrlkit.RequeueIfError(client.IgnoreAlreadyExists(test.write(ctx, req.Client, req.Object)))
				})}})
				pass(10 * time.Second)
				c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(test.of), test.of))
				var got []string
				for _, e := range test.of.GetManagedFields() {
					if e.Manager != "user" {
						got = append(got, e.Manager)
					}
				}
				if diff := cmp.Diff([]string{"things"}, got); diff != "" {
					t.Errorf("managers besides the user (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAFieldOwnerOfAStepWins(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start(operator{name: "things", steps: []step.Step[*Thing]{doing("Write", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(req.Client.Apply(ctx, corev1ac.ConfigMap("child", "default").WithData(map[string]string{"a": "b"}), client.FieldOwner("special")))
		})}})
		pass(10 * time.Second)
		cm := configMap("child", nil)
		c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
		if got := cm.ManagedFields; len(got) != 1 || got[0].Manager != "special" {
			t.Errorf("managers: %v", got)
		}
	})
}
