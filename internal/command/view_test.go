// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/show/view"
)

// What an operator does not follow, another page shows; without one, that of the operator.
func TestViewShowsWhatTheOperatorDoesNotFollow(t *testing.T) {
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("kind") == "Pod" {
			w.Header().Set(view.UnknownHeader, "true")
		}
		_, _ = io.WriteString(w, "operator")
	}))
	defer operator.Close()
	cluster := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "cluster "+r.URL.RawQuery) })
	for _, test := range []struct {
		others        http.Handler
		address, want string
	}{
		{cluster, "/object?kind=Pod&name=a", "cluster kind=Pod&name=a"}, {cluster, "/object?kind=Website&name=a", "operator"}, {nil, "/object?kind=Pod&name=a", "operator"},
	} {
		f := viewFlags{operatorFlags: operatorFlags{endpoint: operator.URL}}
		page, err := f.operatorPage(t.Context(), nil, test.others)
		must(t, err)
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.address, nil))
		if answer.Body.String() != test.want {
			t.Errorf("%s: %q, want %q", test.address, answer.Body, test.want)
		}
	}
}
