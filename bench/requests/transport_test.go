// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTransport(t *testing.T) {
	transport := NewTransport()
	statuses := map[string]int{"/api/v1/namespaces/n/configmaps/taken": http.StatusConflict, "/api/v1/namespaces/n/configmaps/bad": http.StatusUnprocessableEntity}
	wrapped := transport.Wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/api/v1/namespaces/n/secrets/unreachable" {
			return nil, errors.New("no connection")
		}
		return &http.Response{StatusCode: max(statuses[r.URL.Path], http.StatusOK)}, nil
	}))
	for _, r := range []struct{ method, path string }{
		{"POST", "/api/v1/namespaces/n/configmaps"},
		{"PUT", "/api/v1/namespaces/n/configmaps/taken"},
		{"PUT", "/api/v1/namespaces/n/configmaps/bad"},
		{"PUT", "/api/v1/namespaces/n/secrets/unreachable"},
		{"PATCH", "/apis/bench.ctrlkit.dev/v1/namespaces/n/widgets/one/status"},
		{"GET", "/api/v1/namespaces/n/configmaps/taken"},
		{"GET", "/api/v1/namespaces/n/configmaps"},
		{"GET", "/api/v1/namespaces/n/configmaps?watch=true"},
		{"GET", "/apis/bench.ctrlkit.dev/v1"},
	} {
		response, err := wrapped.RoundTrip(httptest.NewRequest(r.method, "https://server"+r.path, nil))
		if err == nil && response == nil {
			t.Errorf("%s %s: no answer", r.method, r.path)
		}
	}
	got, conflicts := transport.Counts()
	want := Counts{
		Writes:  map[string]int{"POST configmaps": 1, "PUT configmaps": 2, "PUT secrets": 1, "PATCH widgets/status": 1},
		Reads:   map[string]int{"GET configmaps": 1, "LIST configmaps": 1},
		Refused: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" || conflicts != 1 {
		t.Errorf("%d conflicts, want 1; counts (-want +got):\n%s", conflicts, diff)
	}
	got.Writes["POST configmaps"] = 7
	if again, _ := transport.Counts(); again.Writes["POST configmaps"] != 1 {
		t.Error("the counts share a map with those that were returned before")
	}
}
