// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
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

func owner(name, uid string, block bool) string {
	return fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"blockOwnerDeletion":%t}]`, name, uid, block)
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

func TestGarbageCollection(t *testing.T) {
	tests := map[string]struct {
		policy string
		want   []string
	}{
		"background": {"Background", nil},
		"foreground": {"Foreground", nil},
		"orphan":     {"Orphan", []string{"child", "grandchild"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			parent := w.create("parent", "")
			child := w.create("child", owner("parent", parent, true))
			w.create("grandchild", owner("child", child, true))
			if got := w.names(); len(got) != 3 {
				t.Fatalf("before the deletion there are %v", got)
			}
			w.do("DELETE", "/api/v1/namespaces/default/configmaps/parent", `{"propagationPolicy":"`+test.policy+`"}`)
			if diff := cmp.Diff(test.want, w.names()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestForegroundDeletionWaitsForWhatBlocksIt(t *testing.T) {
	w := newWorld(t)
	parent := w.create("parent", "")
	w.create("held", owner("parent", parent, true)+`,"finalizers":["example.com/hold"]`)
	w.do("DELETE", "/api/v1/namespaces/default/configmaps/parent", `{"propagationPolicy":"Foreground"}`)
	if diff := cmp.Diff([]string{"held", "parent"}, w.names()); diff != "" {
		t.Error(diff)
	}
	w.do("PATCH", "/api/v1/namespaces/default/configmaps/held", `{"metadata":{"finalizers":null}}`)
	if diff := cmp.Diff([]string(nil), w.names()); diff != "" {
		t.Error(diff)
	}
}

func TestAnOwnerOfAnotherUIDIsNone(t *testing.T) {
	w := newWorld(t)
	w.create("parent", "")
	w.create("child", owner("parent", "00000000-0000-0000-0000-000000000000", false))
	if diff := cmp.Diff([]string{"parent"}, w.names()); diff != "" {
		t.Error(diff)
	}
}

func TestNamespacesAreEmptied(t *testing.T) {
	w := newWorld(t)
	w.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"gone"}}`)
	w.do("POST", "/api/v1/namespaces/gone/configmaps", `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`)
	w.do("POST", "/api/v1/namespaces/gone/configmaps", `{"metadata":{"name":"free"}}`)
	w.do("DELETE", "/api/v1/namespaces/gone", "")
	if diff := cmp.Diff([]string{"held"}, w.names()); diff != "" {
		t.Error(diff)
	}
	if code, answer := w.do("POST", "/api/v1/namespaces/gone/configmaps", `{"metadata":{"name":"late"}}`); code != http.StatusForbidden {
		t.Errorf("creating in a namespace that goes away: %d %v", code, answer)
	}
	w.do("PATCH", "/api/v1/namespaces/gone/configmaps/held", `{"metadata":{"finalizers":null}}`)
	w.names()
	if code, _ := w.do("GET", "/api/v1/namespaces/gone", ""); code != http.StatusNotFound {
		t.Errorf("the namespace is still there: %d", code)
	}
}

func TestListsOfThePast(t *testing.T) {
	w := newWorld(t)
	w.create("a", "")
	_, list := w.do("GET", "/api/v1/namespaces/default/configmaps", "")
	version := list["metadata"].(map[string]any)["resourceVersion"].(string)
	w.create("b", "")
	_, past := w.do("GET", "/api/v1/namespaces/default/configmaps?resourceVersionMatch=Exact&resourceVersion="+version, "")
	if got := len(past["items"].([]any)); got != 1 {
		t.Errorf("%d objects at version %s, want 1", got, version)
	}
	w.Expire(1000)
	if code, _ := w.do("GET", "/api/v1/namespaces/default/configmaps?resourceVersionMatch=Exact&resourceVersion="+version, ""); code != http.StatusGone {
		t.Errorf("an expired version: %d, want 410", code)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.create(name, "")
	}
	var got []string
	for token := ""; ; {
		_, page := w.do("GET", "/api/v1/namespaces/default/configmaps?limit=2&continue="+token, "")
		for _, item := range page["items"].([]any) {
			got = append(got, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
		}
		next, ok := page["metadata"].(map[string]any)["continue"].(string)
		if !ok {
			break
		}
		token = next
		w.create("between"+fmt.Sprint(len(got)), "") // a page shows the world of the first one
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, got); diff != "" {
		t.Error(diff)
	}
}

// events opens a watch, does something, and returns the types and names of the events.
func (w world) events(query string, do func()) []string {
	w.t.Helper()
	r, err := apiserver.NewRequest("GET", "/api/v1/namespaces/default/configmaps?watch=true&"+query, "", nil)
	must(w.t, err)
	watch, refused := w.Watch(r)
	if refused != nil {
		w.t.Fatalf("%s", refused.Body)
	}
	defer watch.Stop()
	do()
	var list []string
	for {
		e, ok := watch.Next()
		if !ok {
			return list
		}
		list = append(list, strings.TrimSpace(e.Type+" "+e.Name))
	}
}

func TestWatches(t *testing.T) {
	change := func(w world) func() {
		return func() {
			w.do("PATCH", "/api/v1/namespaces/default/configmaps/a", `{"metadata":{"labels":{"l":"1"}}}`)
			w.do("PATCH", "/api/v1/namespaces/default/configmaps/a", `{"metadata":{"labels":{"l":"2"}}}`)
			w.do("DELETE", "/api/v1/namespaces/default/configmaps/a", "")
		}
	}
	tests := map[string][]string{
		"": {"ADDED a", "MODIFIED a", "MODIFIED a", "DELETED a"},
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true": {"ADDED a", "BOOKMARK", "MODIFIED a", "MODIFIED a", "DELETED a"},
		"labelSelector=l%3D1":               {"ADDED a", "DELETED a"},
		"fieldSelector=metadata.name%3Db":   nil,
		"resourceVersion=1&labelSelector=l": {"ADDED a", "MODIFIED a", "DELETED a"},
	}
	for query, want := range tests {
		w := newWorld(t)
		w.create("a", "")
		if diff := cmp.Diff(want, w.events(query, change(w))); diff != "" {
			t.Errorf("%q: %s", query, diff)
		}
	}
	w := newWorld(t)
	w.create("a", "")
	w.Expire(1000)
	if got := w.events("resourceVersion=1", func() {}); !slices.Equal(got, []string{"ERROR"}) {
		t.Errorf("watching from an expired version: %v", got)
	}
}

func TestWhatIsNotSimulatedIsRefused(t *testing.T) {
	w := newWorld(t)
	w.do("POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	code, answer := w.do("POST", "/api/v1/namespaces/default/pods/p/exec", `{}`)
	if code != http.StatusNotImplemented || !strings.Contains(fmt.Sprint(answer["message"]), "exec") {
		t.Errorf("executing: %d %v", code, answer)
	}
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

// A limited history forgets the oldest changes: a client that was away for too long has to list again.
func TestHistoryIsLimited(t *testing.T) {
	server := apiserver.New(apiserver.Options{History: 3})
	w := world{t, server}
	for i := range 12 {
		if code, answer := w.do("POST", "/api/v1/namespaces/default/configmaps", fmt.Sprintf(`{"metadata":{"name":"c%02d"}}`, i)); code != 201 {
			t.Fatal(answer)
		}
	}
	_, list := w.do("GET", "/api/v1/namespaces/default/configmaps", "")
	newest, err := strconv.Atoi(list["metadata"].(map[string]any)["resourceVersion"].(string))
	must(t, err)
	for back, want := range map[int]int{0: 12, 1: 11, 3: 9} {
		path := fmt.Sprintf("/api/v1/namespaces/default/configmaps?resourceVersionMatch=Exact&resourceVersion=%d", newest-back)
		code, past := w.do("GET", path, "")
		if items, _ := past["items"].([]any); code != 200 || len(items) != want {
			t.Errorf("%d changes ago: %d with %d ConfigMaps, want %d", back, code, len(items), want)
		}
	}
	for back, want := range map[int]int{3: 200, 11: 410} {
		path := fmt.Sprintf("/api/v1/namespaces/default/configmaps?resourceVersionMatch=Exact&resourceVersion=%d", newest-back)
		if code, _ := w.do("GET", path, ""); code != want {
			t.Errorf("%d changes ago: %d, want %d", back, code, want)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
