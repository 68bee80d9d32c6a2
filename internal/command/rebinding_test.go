// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator"
)

// A page of another site whose name leads to this machine reads nothing that an operator serves in
// plain HTTP beside its metrics, and nothing of "ctrlkit view". A browser of this machine, and a
// forwarded port, read all of it.
func TestNamesOfOtherSitesAreRefused(t *testing.T) {
	mgr := &muxManager{}
	must(t, operator.Observe(mgr, operator.WithPage()))
	must(t, external.ServeAudits(mgr, func(context.Context) ([]external.SystemAudit, error) { return nil, nil }))
	must(t, external.ServeImports(mgr, func(context.Context) ([]external.SystemImport, error) { return nil, nil }))
	if want := []string{explanation.Path, view.Path, orphans.Path, orphans.ImportPath}; !slices.Equal(mgr.paths, want) {
		t.Fatalf("served are %q, want %q", mgr.paths, want)
	}
	server := httptest.NewServer(&mgr.mux)
	defer server.Close()
	bare := httptest.NewServer(explanation.Handler(journal.NewRing(journal.RingOptions{})))
	defer bare.Close()
	page, _, err := serveOnThisMachine(t.Context(), http.NotFoundHandler(), 0)
	must(t, err)

	addresses := []string{bare.URL + explanation.Path, page}
	for _, path := range append(mgr.paths, view.Path+"objects", view.Path+"page.js") {
		addresses = append(addresses, server.URL+path)
	}
	for _, address := range addresses {
		at, err := url.Parse(address)
		must(t, err)
		for host, refused := range map[string]bool{
			"rebound.example.com": true, "rebound.example.com:" + at.Port(): true, "": false, "localhost:" + at.Port(): false, "[::1]:" + at.Port(): false,
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			must(t, err)
			r.Host = host // that of the address if it is empty
			response, err := http.DefaultTransport.RoundTrip(r)
			must(t, err)
			body, _ := io.ReadAll(response.Body) //nolint:errcheck // it is only shown
			_ = response.Body.Close()
			if (response.StatusCode == http.StatusForbidden) != refused {
				t.Errorf("%s for %q: %s %.80s", address, host, response.Status, body)
			}
		}
	}
}

// muxManager is as much of a manager as is needed to serve.
type muxManager struct {
	manager.Manager
	paths []string
	mux   http.ServeMux
}

func (m *muxManager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	m.paths = append(m.paths, path)
	m.mux.Handle(path, handler)
	return nil
}

func (*muxManager) Add(manager.Runnable) error { return nil }

func (*muxManager) Elected() <-chan struct{} { return nil }

func (*muxManager) GetScheme() *runtime.Scheme { return runtime.NewScheme() }

func (*muxManager) GetClient() client.Client { return nil }

func (*muxManager) GetAPIReader() client.Reader { return nil }
