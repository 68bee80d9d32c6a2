// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package foreign_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden/foreign"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/state"
)

// Each document has the rights that it needs to read what it names, and no others.
func TestRights(t *testing.T) {
	t.Parallel()
	rule := regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:groups=(\S*),resources=(\S*),verbs=get;list;watch$`)
	for document, want := range map[string][]string{
		"route":       {"gateway.networking.k8s.io gateways", "gateway.networking.k8s.io httproutes", `"" services`},
		"certificate": {`"" secrets`, "cert-manager.io certificates", "cert-manager.io clusterissuers", "cert-manager.io issuers"},
		"monitor":     {`"" secrets`, `"" services`, "monitoring.coreos.com prometheuses", "monitoring.coreos.com servicemonitors"},
		"database":    {`"" pods`, `"" secrets`, `"" services`, "apps statefulsets", "databases.example.com buckets", "databases.example.com databases"},
	} {
		text, err := os.ReadFile("zz_generated." + document + ".go")
		must(t, err)
		var got []string
		for _, m := range rule.FindAllSubmatch(text, -1) {
			got = append(got, string(m[1])+" "+string(m[2]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || len(regexp.MustCompile(`kubebuilder:rbac`).FindAll(text, -1)) != len(got) {
			t.Errorf("%s (-want +got):\n%s", document, diff)
		}
	}
}

func operator(ctx context.Context, p *sim.Process) error {
	options := p.ManagerOptions()
	options.Scheme = scheme.Scheme
	if err := foreign.Cache(&options); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(p.Config(), options)
	if err != nil {
		return err
	}
	if err := foreign.Setup(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	obj := state.NewObject(apiVersion, kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.Object["spec"] = spec
	return obj
}

func gateway(namespace, name string) client.Object {
	return object("gateway.networking.k8s.io/v1", "Gateway", namespace, name, map[string]any{})
}

func meta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

func secret(name string) client.Object { return &corev1.Secret{ObjectMeta: meta("default", name, nil)} }

func service(namespace, name string) client.Object {
	return &corev1.Service{ObjectMeta: meta(namespace, name, nil), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func issuer(kind, namespace, name, account string) client.Object {
	return object("cert-manager.io/v1", kind, namespace, name, map[string]any{
		"acme": map[string]any{"privateKeySecretRef": map[string]any{"name": account}},
	})
}

func prometheus(namespace, name, team string) client.Object {
	obj := object("monitoring.coreos.com/v1", "Prometheus", namespace, name, map[string]any{})
	obj.SetLabels(map[string]string{"team": team})
	return obj
}

// statefulSet has one Pod, NAME-0, which a player makes.
func statefulSet(name string) client.Object {
	labels := map[string]string{"set": name}
	return &appsv1.StatefulSet{ObjectMeta: meta("default", name, nil), Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(1)), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db"}}},
		},
	}}
}

func labelled(obj client.Object, database string) client.Object {
	obj.SetLabels(map[string]string{"database": database})
	return obj
}

// replicas changes the number of Pods of the StatefulSet a.
func replicas(n int32) func(*sim.World) {
	return func(w *sim.World) {
		sim.Update(w, &appsv1.StatefulSet{ObjectMeta: meta("default", "a", nil)}, func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n })
	}
}

// serviceType changes the type of the Service ro.
func serviceType(to corev1.ServiceType) func(*sim.World) {
	return func(w *sim.World) {
		sim.Update(w, &corev1.Service{ObjectMeta: meta("default", "ro", nil)}, func(s *corev1.Service) { s.Spec.Type = to })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A story is what happens to a target, and what it has found after each event.
type story struct {
	target *unstructured.Unstructured
	events []event
}

type event struct {
	create, remove client.Object
	change         func(target *unstructured.Unstructured)
	update         func(w *sim.World)
	found          []string
}

func set(t *testing.T, value any, path ...string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) { must(t, unstructured.SetNestedField(obj.Object, value, path...)) }
}

func (s story) run(t *testing.T, w *sim.World) {
	user, err := client.New(w.Config(), client.Options{Scheme: scheme.Scheme})
	must(t, err)
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "infra"}}, s.target.DeepCopy())
	for i, e := range s.events {
		switch {
		case e.create != nil:
			w.Create(e.create.DeepCopyObject().(client.Object))
		case e.remove != nil:
			w.Delete(e.remove.DeepCopyObject().(client.Object))
		case e.change != nil:
			sim.Update(w, s.target.DeepCopy(), e.change)
		case e.update != nil:
			e.update(w)
		}
		w.Settle()
		got := s.target.DeepCopy()
		must(t, user.Get(context.Background(), client.ObjectKeyFromObject(got), got))
		found, _, err := unstructured.NestedStringSlice(got.Object, "status", "found")
		must(t, err)
		if diff := cmp.Diff(e.found, found, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after the event %d (-want +got):\n%s", i, diff)
		}
	}
}

// Each operator finds what its target names, and ends in the same state whatever goes wrong, with
// the rights in role.yaml.
func TestStories(t *testing.T) {
	rings.Test(t, "takes seconds")
	for name, s := range map[string]story{
		"route": {
			target: object("gateway.networking.k8s.io/v1", "HTTPRoute", "default", "a", map[string]any{
				"parentRefs": []any{
					map[string]any{"name": "near"}, map[string]any{"name": "far", "namespace": "infra"},
					map[string]any{"name": "mesh", "kind": "Service", "group": ""},
				},
				"rules": []any{map[string]any{"backendRefs": []any{
					map[string]any{"name": "web"}, map[string]any{"name": "db", "namespace": "infra", "kind": "Service"}, map[string]any{"name": "web", "kind": "Bucket", "namespace": "infra"},
				}}},
			}),
			events: []event{
				{},
				{create: gateway("infra", "far"), found: []string{"Gateway infra/far"}},
				{create: gateway("default", "near"), found: []string{"Gateway default/near", "Gateway infra/far"}},
				{create: gateway("default", "far"), found: []string{"Gateway default/near", "Gateway infra/far"}},
				{create: gateway("default", "mesh"), found: []string{"Gateway default/near", "Gateway infra/far"}},
				{create: service("infra", "db"), found: []string{"Gateway default/near", "Gateway infra/far", "Service infra/db"}},
				{create: service("infra", "web"), found: []string{"Gateway default/near", "Gateway infra/far", "Service infra/db"}},
				{create: service("default", "web"), found: []string{"Gateway default/near", "Gateway infra/far", "Service default/web", "Service infra/db"}},
				{remove: gateway("infra", "far"), found: []string{"Gateway default/near", "Service default/web", "Service infra/db"}},
			},
		},
		"certificate": {
			target: object("cert-manager.io/v1", "Certificate", "default", "a", map[string]any{"secretName": "tls", "issuerRef": map[string]any{"name": "ca"}}),
			events: []event{
				{create: issuer("ClusterIssuer", "", "ca", "account")},
				{create: issuer("Issuer", "default", "ca", "account"), found: []string{"Issuer default/ca"}},
				{create: secret("account"), found: []string{"Issuer default/ca", "Secret default/account"}},
				{change: set(t, "ClusterIssuer", "spec", "issuerRef", "kind"), found: []string{"ClusterIssuer /ca"}},
				{remove: issuer("ClusterIssuer", "", "ca", "account")},
				{create: secret("tls"), found: []string{"Secret default/tls"}},
				{change: set(t, "Issuer", "spec", "issuerRef", "kind"), found: []string{"Issuer default/ca", "Secret default/account", "Secret default/tls"}},
				{change: set(t, "awspca.example.com", "spec", "issuerRef", "group"), found: []string{"Secret default/tls"}},
			},
		},
		"monitor": {
			target: object("monitoring.coreos.com/v1", "ServiceMonitor", "default", "web", map[string]any{"endpoints": []any{
				map[string]any{"port": "metrics"},
				map[string]any{"authorization": map[string]any{"credentials": map[string]any{"name": "token", "key": "t"}}},
			}}),
			events: []event{
				{create: prometheus("infra", "main", "web")},
				{change: set(t, map[string]any{"team": "web"}, "metadata", "labels"), found: []string{"Prometheus infra/main"}},
				{create: service("default", "web"), found: []string{"Prometheus infra/main", "Service default/web"}},
				{create: service("default", "shop"), found: []string{"Prometheus infra/main", "Service default/web"}},
				{create: secret("token"), found: []string{"Prometheus infra/main", "Service default/web", "Secret default/token"}},
				{
					change: set(t, map[string]any{"app.kubernetes.io/name": "shop", "team": "web"}, "metadata", "labels"),
					found:  []string{"Prometheus infra/main", "Service default/shop", "Secret default/token"},
				},
				{remove: service("default", "shop"), found: []string{"Prometheus infra/main", "Secret default/token"}},
				{change: set(t, map[string]any{}, "metadata", "labels"), found: []string{"Service default/web", "Secret default/token"}},
			},
		},
		"database": {
			target: object("databases.example.com/v1", "Database", "default", "a", map[string]any{}),
			events: []event{
				{create: object("databases.example.com/v1", "Bucket", "default", "b", map[string]any{"secretName": "keys"})},
				{create: statefulSet("b")},
				{create: statefulSet("a"), found: []string{"Pod default/a-0"}},
				{change: set(t, "b", "spec", "backup", "bucket"), found: []string{"Bucket default/b", "Pod default/a-0"}},
				{create: secret("keys"), found: []string{"Bucket default/b", "Secret default/keys", "Pod default/a-0"}},
				{remove: secret("keys"), found: []string{"Bucket default/b", "Pod default/a-0"}},
				{change: set(t, "", "spec", "backup", "bucket"), found: []string{"Pod default/a-0"}},
				{create: labelled(service("default", "a"), "a"), found: []string{"Pod default/a-0"}},
				{create: labelled(service("default", "ro"), "a"), found: []string{"Pod default/a-0", "Service default/ro"}},
				{update: serviceType(corev1.ServiceTypeNodePort), found: []string{"Pod default/a-0"}},
				{update: serviceType(corev1.ServiceTypeLoadBalancer), found: []string{"Pod default/a-0", "Service default/ro"}},
				{update: replicas(2), found: []string{"Pod default/a-0", "Pod default/a-1", "Service default/ro"}},
				{remove: statefulSet("a"), found: []string{"Service default/ro"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, sim.Workload{
				Name: name, Scheme: scheme.Scheme, CRDs: []string{"definitions.yaml"}, RBAC: []string{"role.yaml"}, Operator: operator,
				Script: func(w *sim.World) { s.run(t, w) },
			}, sim.WithPairs(0), sim.WithSample(5))
		})
	}
}
