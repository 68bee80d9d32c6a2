// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// world is a server and what is done to it.
type world struct {
	t *testing.T
	*apiserver.Server
}

func newWorld(t *testing.T) world { return world{t, apiserver.New(apiserver.Options{})} }

// do sends a request, and returns the code and the answer.
func (w world) do(method, path, body string) (int, map[string]any) {
	w.t.Helper()
	contentType := "application/json"
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
	}
	r, err := apiserver.NewRequest(method, path, contentType, []byte(body))
	must(w.t, err)
	response := w.Serve(r)
	var answer map[string]any
	if err := json.Unmarshal(response.Body, &answer); err != nil {
		w.t.Fatalf("%s %s: %s", method, path, response.Body)
	}
	return response.Code, answer
}

// create creates a ConfigMap, and returns its UID.
func (w world) create(name, metadata string) string {
	w.t.Helper()
	code, answer := w.do("POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"`+name+`"`+metadata+`}}`)
	if code != http.StatusCreated {
		w.t.Fatalf("creating %s: %v", name, answer)
	}
	return answer["metadata"].(map[string]any)["uid"].(string)
}

// names returns the ConfigMaps that there are, after the work in the background.
func (w world) names() []string {
	for w.Work() {
	}
	var names []string
	for _, o := range w.Objects() {
		if o.Resource.Resource == "configmaps" {
			names = append(names, o.Name)
		}
	}
	return names
}

// Equal requests in equal order make equal worlds.
func TestEqualRequestsMakeEqualWorlds(t *testing.T) {
	run := func() string {
		w := world{t, apiserver.New(apiserver.Options{Seed: 3, Now: func() (epoch time.Time) { return }})}
		w.create("parent", "")
		w.do("POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"generateName":"g-"}}`)
		w.do("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`)
		return fmt.Sprint(w.Objects())
	}
	if a, b := run(), run(); a != b {
		t.Errorf("two worlds differ:\n%s\n%s", a, b)
	}
}

func FuzzServe(f *testing.F) {
	f.Add("POST", "/api/v1/namespaces/default/configmaps", "application/json", []byte(`{"metadata":{"name":"x"}}`))
	f.Add("PATCH", "/apis/apps/v1/namespaces/default/deployments/x", "application/apply-patch+yaml", []byte(`{"spec":{"template":null}}`))
	f.Add("PATCH", "/api/v1/namespaces/default/services/s", "application/strategic-merge-patch+json", []byte(`{"spec":{"ports":null}}`))
	f.Add("DELETE", "/api/v1/namespaces/default", "application/json", []byte(`{"propagationPolicy":1}`))
	f.Add("GET", "/api/v1/pods?continue=x&limit=-1&labelSelector=((", "", []byte(nil))
	f.Fuzz(func(t *testing.T, method, path, contentType string, body []byte) {
		r, err := apiserver.NewRequest(method, path, contentType, body)
		if err != nil {
			return
		}
		server := apiserver.New(apiserver.Options{})
		if r.Verb == "watch" {
			if watch, refused := server.Watch(r); refused == nil {
				watch.Stop()
			}
			return
		}
		if response := server.Serve(r); response.Code < 200 {
			t.Errorf("%s %s: %d", method, path, response.Code)
		}
	})
}

func newConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string]string{"a": "b"}}
}

// clients are what the benchmarks compare: the same client interface over this server and over
// controller-runtime's fake.
func clients(b *testing.B) map[string]client.WithWatch {
	c, err := client.NewWithWatch(apiserver.New(apiserver.Options{}).Config(), client.Options{})
	must(b, err)
	return map[string]client.WithWatch{"server": c, "fake": fake.NewClientBuilder().Build()}
}

func benchmark(b *testing.B, do func(c client.WithWatch, cm *corev1.ConfigMap, i int) error) {
	all := clients(b)
	for _, name := range []string{"server", "fake"} {
		b.Run(name, func(b *testing.B) {
			cm := newConfigMap()
			if err := all[name].Create(b.Context(), cm); client.IgnoreAlreadyExists(err) != nil {
				b.Fatal(err)
			}
			must(b, all[name].Get(b.Context(), client.ObjectKeyFromObject(cm), cm))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				must(b, do(all[name], cm, i))
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, func(c client.WithWatch, cm *corev1.ConfigMap, _ int) error {
		return c.Get(context.Background(), client.ObjectKeyFromObject(cm), cm)
	})
}

func BenchmarkUpdate(b *testing.B) {
	benchmark(b, func(c client.WithWatch, cm *corev1.ConfigMap, i int) error {
		cm.Data["a"] = fmt.Sprint(i)
		return c.Update(context.Background(), cm)
	})
}

// An applied object may have a resource version, which is ignored when the object is created.
func TestApplyWithAResourceVersion(t *testing.T) {
	c, err := client.New(apiserver.New(apiserver.Options{}).Config(), client.Options{})
	must(t, err)
	apply := func(name, value string) error {
		cm := corev1ac.ConfigMap(name, "default").WithResourceVersion("1").WithData(map[string]string{"a": value})
		return c.Apply(t.Context(), cm, client.FieldOwner("me"))
	}
	if err := apply("x", "1"); err != nil {
		t.Errorf("creating with a resource version: %v", err)
	}
	if err := apply("x", "2"); !apierrors.IsConflict(err) {
		t.Errorf("applying a stale resource version: %v, want a conflict", err)
	}
}

func BenchmarkApply(b *testing.B) {
	benchmark(b, func(c client.WithWatch, _ *corev1.ConfigMap, i int) error {
		cm := newConfigMap()
		cm.APIVersion, cm.Kind, cm.Data["a"] = "v1", "ConfigMap", fmt.Sprint(i)
		//lint:ignore SA1019 typed objects can be applied too
		return c.Patch(context.Background(), cm, client.Apply, client.FieldOwner("me"), client.ForceOwnership)
	})
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		apiserver.New(apiserver.Options{})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Bodies have the limits of the API server and of etcd. Validation limits ConfigMaps to less than etcd takes.
func TestLimits(t *testing.T) {
	for size, want := range map[int]string{7 << 18: "500 etcdserver: request is too large", 3<<20 + 1: "413 "} {
		pod := `{"metadata":{"name":"l"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"K","value":"` + strings.Repeat("x", size) + `"}]}]}}`
		s := &story{world: newWorld(t)}
		if got := s.send("POST", "pods", "", pod); !strings.HasPrefix(got, want) {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
}
