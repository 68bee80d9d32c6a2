// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package defined_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden/defined"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/state"
)

var plane planetest.Shared

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// operator runs the operator until the context ends.
func operator(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	options.Scheme = scheme.Scheme
	if err := defined.CacheRouting(&options); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := (&defined.Reconciler{Client: mgr.GetClient(), Logger: mgr.GetLogger()}).Setup(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	obj := state.NewObject("traffic.example.com/v1", kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.Object["spec"] = spec
	return obj
}

func route(namespace, name string) *unstructured.Unstructured {
	obj := object("Route", namespace, name, map[string]any{
		"backends": []any{map[string]any{"service": "blue"}, map[string]any{"weight": int64(1)}, map[string]any{"service": "green"}},
		"hosts":    []any{"one", "two"},
		"zone":     "z1", "tier": "gold", "service": map[string]any{"name": "web", "port": int64(80), "secure": true},
	})
	obj.SetLabels(map[string]string{"tier": "gold"})
	return obj
}

func service(namespace string) *corev1.Service { return serviceOf(namespace, "web") }

func serviceOf(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func settings(protocol string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "routing"}, Data: map[string]string{"scheme": protocol}}
}

func credentials(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
}

// authority is the ConfigMap that is called after credentials.
func authority(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name + "-ca", Labels: map[string]string{"kind": "ca"}},
		Data:       map[string]string{"ca.crt": text},
	}
}

// The operator of a kind without a Go type ends in the same state whatever goes wrong.
func TestSurvivesEverything(t *testing.T) {
	rings.Test(t, "takes seconds")
	sim.Run(t, sim.Workload{
		Scheme: scheme.Scheme, CRDs: []string{"traffic.yaml"},
		Operator: func(ctx context.Context, p *sim.Process) error { return operator(ctx, p.Config(), p.ManagerOptions()) },
		Script: func(w *sim.World) {
			w.Create(route("default", "a"))
			w.Create(service("default"))
			w.Settle()
			zone := object("Zone", "", "one", map[string]any{"code": "z1", "region": "north"})
			w.Create(zone)
			w.Create(route("default", "b"))
			w.Create(settings("https"))
			w.Create(credentials("first"))
			w.Create(serviceOf("default", "blue"))
			w.Create(authority("first", "1"))
			w.Settle()
			sim.Update(w, zone, func(zone *unstructured.Unstructured) {
				must(t, unstructured.SetNestedField(zone.Object, "first", "spec", "secret"))
			})
			w.Settle()
			sim.Update(w, authority("first", "1"), func(ca *corev1.ConfigMap) { ca.Data["ca.crt"] = "2" })
			w.Settle()
			w.Delete(service("default"))
			w.Settle()
		},
	}, sim.WithPairs(0), sim.WithSample(10))
}

// On a real API server, the events of each state reach the Route, and its cache has the indexes.
func TestOnAControlPlane(t *testing.T) {
	rings.Test(t, "starts a control plane")
	cluster := rest.CopyConfig(plane.ForTest(t).Config())
	if _, err := envtest.InstallCRDs(cluster, envtest.CRDInstallOptions{Paths: []string{"traffic.yaml"}}); err != nil {
		t.Fatal(err)
	}
	user, err := client.New(cluster, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "defined-"}}
	must(t, user.Create(t.Context(), namespace))
	place := namespace.Name
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator(ctx, cluster, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)}})
	}()
	t.Cleanup(func() { cancel(); must(t, <-ended) })

	first, status, urls := route(place, "a"), map[string]any{"sharing": int64(1), "peers": int64(0), "found": int64(0)}, []string{""}
	must(t, user.Create(t.Context(), first))
	wait(t, user, first, status, urls)
	must(t, user.Create(t.Context(), service(place)))
	urls[0] = "http://web:80"
	wait(t, user, first, status, urls)
	zone := object("Zone", "", "one-"+place, map[string]any{"code": "z1", "region": "north"})
	must(t, user.Create(t.Context(), zone))
	status["region"] = "north"
	wait(t, user, first, status, urls)
	second, hidden, retired := route(place, "b"), route(place, "hidden"), route(place, "retired")
	hidden.SetAnnotations(map[string]string{"example.com/hidden": "true"})
	retired.SetLabels(map[string]string{"tier": "gold", "retired": ""})
	for _, obj := range []client.Object{second, hidden, retired} {
		must(t, user.Create(t.Context(), obj))
	}
	status["sharing"] = int64(2)
	wait(t, user, first, status, urls)
	must(t, user.Create(t.Context(), settings("https")))
	urls[0] = "https://web:80"
	wait(t, user, first, status, urls)

	// Through the Zone and what it names: each event on the way counts.
	must(t, user.Create(t.Context(), authority(place, "1")))
	must(t, unstructured.SetNestedField(zone.Object, place, "spec", "secret"))
	must(t, user.Update(t.Context(), zone))
	must(t, user.Create(t.Context(), credentials(place)))
	status["secret"], status["ca"] = place, "1"
	wait(t, user, first, status, urls)
	must(t, user.Update(t.Context(), authority(place, "2")))
	status["ca"] = "2"
	wait(t, user, first, status, urls)
	peer := route(place, "peer")
	peer.SetLabels(map[string]string{"tier": "gold", "zone": "z1", "retired": ""})
	must(t, user.Create(t.Context(), peer))
	status["peers"] = int64(1)
	wait(t, user, first, status, urls)
	must(t, user.Delete(t.Context(), credentials(place)))
	delete(status, "ca")
	wait(t, user, first, status, urls)
	// Each element of a list.
	must(t, user.Create(t.Context(), serviceOf(place, "green")))
	must(t, user.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "host-two"}}))
	status["found"] = int64(2)
	wait(t, user, first, status, urls)
	must(t, user.Delete(t.Context(), serviceOf(place, "green")))
	status["found"] = int64(1)
	wait(t, user, first, status, urls)
	must(t, user.Delete(t.Context(), service(place)))
	urls[0] = ""
	wait(t, user, first, status, urls)
}

// wait waits until a Route has this status, and until the Probes with its label have these URLs.
func wait(t *testing.T, user client.Client, obj *unstructured.Unstructured, status map[string]any, urls []string) {
	t.Helper()
	problem := ""
	for range 300 {
		got := obj.DeepCopy()
		must(t, user.Get(t.Context(), client.ObjectKeyFromObject(obj), got))
		probes := state.NewObjectList("traffic.example.com/v1", "Probe")
		must(t, user.List(t.Context(), probes, client.InNamespace(obj.GetNamespace()), client.MatchingLabels{"route": obj.GetName()}))
		var have []string
		for i := range probes.Items {
			have = append(have, *state.Field(&probes.Items[i], "spec", "url"))
		}
		if problem = cmp.Diff(status, got.Object["status"]) + cmp.Diff(urls, have); problem == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("-want +got:\n%s", problem)
}

// A list has an object for each element of a list of the target that names one, in several ways.
func TestElements(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "1"}, Spec: corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "b"}, {Name: "a"}, {Name: ""}, {Name: "a"}, {Name: "missing"}},
		Volumes: []corev1.Volume{
			{Name: "none"},
			{Name: "1", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "mine"}}},
			{Name: "2", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "other"}}},
		},
		Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{envFrom("x"), {}}}, {}, {EnvFrom: []corev1.EnvFromSource{envFrom("y"), envFrom("z")}}},
	}}
	object := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}
	}
	owned := object("y", nil)
	owned.OwnerReferences = []metav1.OwnerReference{{UID: "1"}}
	reader := fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: object("a", nil)}, &corev1.Secret{ObjectMeta: object("b", nil)}, &corev1.Secret{ObjectMeta: object("c", nil)},
		&corev1.PersistentVolumeClaim{ObjectMeta: object("mine", map[string]string{"app": "p"})}, &corev1.PersistentVolumeClaim{ObjectMeta: object("other", nil)},
		&corev1.ConfigMap{ObjectMeta: object("x", nil)}, &corev1.ConfigMap{ObjectMeta: owned},
	).Build()
	states := defined.NewMountsState(reader, pod)
	secrets, err := states.GetPullSecrets(t.Context())
	must(t, err)
	claims, err := states.GetClaims(t.Context())
	must(t, err)
	maps, err := states.GetMaps(t.Context())
	must(t, err)
	if len(secrets) != 2 || secrets[0].Name != "a" || secrets[1].Name != "b" || len(claims) != 1 || claims[0].Name != "mine" || len(maps) != 1 || maps[0].Name != "y" {
		t.Errorf("got %v, %v, %v", secrets, claims, maps)
	}
}

// A reference beside those to elements that is not set is an error, as it is in any other name.
func TestElementsWithoutTheRest(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{
		HostAliases: []corev1.HostAlias{{Hostnames: []string{"a", "b"}}},
	}}
	reader := fake.NewClientBuilder().WithObjects(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "b-x"}}).Build()
	_, err := defined.NewMountsState(reader, pod).GetHosts(t.Context())
	if err == nil || !strings.Contains(err.Error(), "target.Spec.RuntimeClassName is nil") {
		t.Errorf("got the error %v", err)
	}
	pod.Spec.RuntimeClassName = new("x")
	if hosts, err := defined.NewMountsState(reader, pod).GetHosts(t.Context()); err != nil || len(hosts) != 1 {
		t.Errorf("got %v, %v", hosts, err)
	}
}

func envFrom(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// What is not set is an error that names it, unless it is optional.
func TestNotSet(t *testing.T) {
	t.Parallel()
	target := route("default", "a")
	unstructured.RemoveNestedField(target.Object, "spec", "service", "name")
	_, err := defined.NewRoutingState(nil, target).GetService(t.Context())
	if err == nil || !strings.Contains(err.Error(), "target.spec.service.name is not set") {
		t.Errorf("got the error %v", err)
	}
	for _, empty := range []map[string]any{nil, {}, {"service": ""}} {
		if empty != nil {
			must(t, unstructured.SetNestedField(target.Object, empty, "spec", "fallback"))
		}
		if fallback, err := defined.NewRoutingState(nil, target).GetFallback(t.Context()); fallback != nil || err != nil {
			t.Errorf("with %v the fallback is %v, %v", empty, fallback, err)
		}
	}
}

// Getters return objects with methods for the fields that the document reads, and with all else.
func TestTypedViews(t *testing.T) {
	t.Parallel()
	zone := object("Zone", "", "one", map[string]any{"code": "z1", "region": "north"})
	sharing := route("default", "b")
	double := &defined.RoutingFakeState{
		Zone: &defined.RoutingZone{Unstructured: *zone}, Sharing: []defined.RoutingRoute{{Unstructured: *sharing}, {Unstructured: *object("Route", "default", "c", nil)}},
	}
	got, err := double.GetZone(t.Context())
	must(t, err)
	code, set := got.SpecCode()
	if secret, also := got.SpecSecret(); code != "z1" || !set || secret != "" || also {
		t.Errorf("code %q, %v, secret %q, %v", code, set, secret, also)
	}
	routes, err := double.GetSharing(t.Context())
	must(t, err)
	port, set := routes[0].SpecServicePort()
	if _, also := routes[1].SpecServicePort(); port != 80 || !set || also {
		t.Errorf("port %d, %v, and another one %v", port, set, also)
	}
	if diff := cmp.Diff([][]string{{"blue", "green"}, {"one", "two"}, nil}, [][]string{routes[0].SpecBackendsService(), routes[0].SpecHosts(), routes[1].SpecHosts()}); diff != "" {
		t.Error(diff)
	}
	// What a test set, and what an action got, are copies.
	must(t, unstructured.SetNestedField(got.Object, "z2", "spec", "code"))
	if code := state.Field(&double.Zone.Unstructured, "spec", "code"); *code != "z1" {
		t.Errorf("the double has the code %s", *code)
	}

	// So is what is read, once for all actions.
	target, probe := route("default", "a"), object("Probe", "default", "a", map[string]any{"url": "http://web"})
	target.SetUID("1")
	probe.SetLabels(map[string]string{"route": "a"})
	probe.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(target, target.GroupVersionKind())})
	states := defined.NewRoutingState(fake.NewClientBuilder().WithObjects(probe).Build(), target)
	for range 2 {
		probes, err := states.GetProbes(t.Context())
		must(t, err)
		if len(probes) != 1 || *state.Field(&probes[0].Unstructured, "spec", "url") != "http://web" {
			t.Fatalf("read %v", probes)
		}
		must(t, unstructured.SetNestedField(probes[0].Object, "changed", "spec", "url"))
	}
	if missing, err := defined.NewRoutingState(nil, object("Route", "default", "d", nil)).GetZone(t.Context()); missing != nil || err == nil {
		t.Errorf("without spec.zone: %v, %v", missing, err)
	}
	var obj client.Object = got // which clients take
	if obj.GetName() != "one" || obj.GetObjectKind().GroupVersionKind().Kind != "Zone" {
		t.Errorf("got %v", obj)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
