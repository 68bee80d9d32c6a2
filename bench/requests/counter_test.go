// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// Requests are counted by verb and resource; a refusal is counted besides.
func TestCounterCounts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	defer server.Close()
	counter, err := NewCounter(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer counter.Close()
	tests := []struct{ method, path, want string }{
		{"GET", "/api", ""},
		{"GET", "/apis/apps/v1", ""},
		{"GET", "/api/v1/namespaces/a/pods", "1 LIST pods"},
		{"GET", "/api/v1/namespaces/a/pods/b", "1 GET pods"},
		{"GET", "/api/v1/namespaces/a/pods?watch=true", ""},
		{"GET", "/api/v1/namespaces", "1 LIST namespaces"},
		{"GET", "/api/v1/namespaces/a", "1 GET namespaces"},
		{"GET", "/apis/apps/v1/deployments", "1 LIST deployments"},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "1 POST deployments"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", "1 PATCH deployments/status"},
		{"PUT", "/apis/apps/v1/namespaces/a/deployments/b", "1 PUT deployments, 1 refused"},
		{"POST", "/apis/events.k8s.io/v1/namespaces/a/events", "1 event"},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", ""},
	}
	for _, test := range tests {
		request, err := http.NewRequest(test.method, counter.Config().Host+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		got := counter.Take()
		text := got.String()
		if got.Refused > 0 {
			text += ", 1 refused"
		}
		if got.Events > 0 {
			text += "1 event"
		}
		if text != test.want {
			t.Errorf("%s %s: got %q, want %q", test.method, test.path, text, test.want)
		}
	}
}
