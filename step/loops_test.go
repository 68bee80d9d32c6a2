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
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A cluster is an API server in memory with operators that run as they do in a cluster, in virtual time.
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

// A distant transport takes some time for each write, so that operators that are busy let time pass. Reads take none: those of discovery happen under a mutex,
// which would stop the time of a bubble.
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
	name  string
	rest  step.Rest
	steps []step.Step[*Thing]
	watch func(b *builder.Builder) *builder.Builder
	strip bool // the cache has no managed fields
}

// start starts an operator, which ends with the test.
func (c *cluster) start(o operator) {
	c.t.Helper()
	config := rest.CopyConfig(c.server.Config())
	config.Transport = distant{config.Transport, c}
	options := ctrl.Options{
		Scheme: clusterScheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}
	if o.strip {
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}
	mgr, err := ctrl.NewManager(config, options)
	c.must(err)
	engine, err := step.New(step.Options[*Thing]{
		Name: o.name, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Observers: []journal.Observer{c.observer(o.name)}, Rest: o.rest,
	}, o.steps...)
	c.must(err)
	b := ctrl.NewControllerManagedBy(mgr).For(&Thing{})
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

// An operator that applies its children in every reconcile is in no hot loop, also while they change by themselves.
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
					c.rollOut(second % 7)
					if second == 1800 {
						c.must(c.user.Delete(t.Context(), deleted))
					}
				})
				c.calm("things")
				c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(deleted), &corev1.ConfigMap{}))
				if got := c.ran("things"); got < 1000 {
					t.Errorf("the step ran %d times in an hour, want at every change of a child", got)
				}
				if got := c.requests["GET app"]; test.read && got > 0 || got > 400 {
					t.Errorf("%d live reads of a child that changes every second", got)
				}
			})
		})
	}
}

// What is applied and was as wanted already is no write: the object rests, but not when the child changes.
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
				c.start(operator{name: "things", rest: step.RestUntilInputsChange, watch: watchThree, steps: []step.Step[*Thing]{
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
				if got := c.requests["GET child"]; got > 100 {
					t.Errorf("%d live reads of the child", got)
				}
			})
		})
	}
}

// An operator that replaces a child every 20 seconds, and keeps in its status what is active, is in no hot loop.
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
		if got := c.requests["DELETE child"]; got < 150 {
			t.Errorf("replaced %d times in an hour", got)
		}
	})
}

// Two operators that want another value each are told of each other.
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
				shared.OwnerReferences = []metav1.OwnerReference{{APIVersion: thingVersion.String(), Kind: "Thing", Name: "a", UID: c.thing().UID, Controller: new(true)}}
				c.must(c.as("bystander").Create(t.Context(), shared))
				c.start(operator{name: "left", watch: watchThree, strip: test.strip, steps: []step.Step[*Thing]{doing("Write", test.left("left"))}})
				c.start(operator{name: "right", watch: watchThree, strip: test.strip, steps: []step.Step[*Thing]{doing("Write", test.right("right"))}})
				pass(time.Minute)
				for name, other := range map[string]string{"left": "right", "right": "left"} {
					found := c.found(name)
					if len(found) == 0 {
						t.Errorf("%s was told of nothing within a minute", name)
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
