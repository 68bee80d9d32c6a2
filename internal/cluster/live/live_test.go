// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// A group that does not answer is named, and the rest is there.
func TestResources(t *testing.T) {
	answers := map[string]string{
		"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis":   `{"kind": "APIGroupList", "groups": [{"name": "metrics.k8s.io", "versions": [{"groupVersion": "metrics.k8s.io/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "metrics.k8s.io/v1", "version": "v1"}}]}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "secrets", "namespaced": true, "verbs": ["list", "create"]}, {"name": "nodes", "verbs": ["list"]}, {"name": "bindings", "verbs": ["create"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusServiceUnavailable) // an aggregated API server that does not answer
		}
		_, _ = w.Write([]byte(answers[r.URL.Path])) //nolint:errcheck // the client says it
	}))
	defer server.Close()
	client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
	list, silent, err := Resources(client, "list")
	want := []Resource{{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false}, {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, true}}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	if silent["metrics.k8s.io/v1"] == nil || len(silent) != 1 {
		t.Errorf("silent: %v", silent)
	}
	clear(answers)
	if _, _, err := Resources(client, "list"); err == nil {
		t.Error("a cluster that answers nothing is no error")
	}
}

// A list is read to its end.
func TestEach(t *testing.T) {
	pages := map[string]*corev1.SecretList{
		"":     {ListMeta: metav1.ListMeta{Continue: "next"}, Items: []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}},
		"next": {Items: []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}},
	}
	var names []string
	err := Each(t.Context(), func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) { return pages[o.Continue], nil }, func(s *corev1.Secret) {
		names = append(names, s.Name)
	})
	if diff := cmp.Diff([]string{"a", "b"}, names); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}
