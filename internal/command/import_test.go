// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/internal/orphans"
)

// TestImport runs scripts beside operators with something to import, nothing, or a system that does
// not answer, and one that serves none.
func TestImport(t *testing.T) {
	orders := map[string]any{
		"apiVersion": "nats.ctrlkit.dev/v1", "kind": "Stream", "spec": map[string]any{"subjects": []string{"orders.>"}},
		"metadata": map[string]any{"namespace": "shop", "name": "orders", "annotations": map[string]any{"external.ctrlkit.dev/id": "ORDERS"}},
	}
	other := map[string]any{"kind": "Stream", "metadata": map[string]any{"name": "other"}}
	found := orphans.Import{Name: "nats://a", Objects: []map[string]any{orders, other}}
	answer := func(code int, of func(r *http.Request) any) string {
		mux := http.NewServeMux()
		mux.HandleFunc(orphans.ImportPath, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			if text, ok := of(r).(string); ok {
				_, _ = w.Write([]byte(text))
				return
			}
			_ = json.NewEncoder(w).Encode(of(r))
		})
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		return server.URL
	}
	report := func(systems ...orphans.Import) func(*http.Request) any {
		return func(*http.Request) any { return orphans.Imports{Systems: systems} }
	}
	endpoints := map[string]string{
		"FOUND":   answer(http.StatusOK, report(found)),
		"NOTHING": answer(http.StatusOK, report(orphans.Import{Name: "nats://a"})),
		"PARTLY":  answer(http.StatusOK, report(found, orphans.Import{Name: "nats://b", Error: "connection refused"})),
		"ECHO": answer(http.StatusOK, func(r *http.Request) any {
			return orphans.Imports{Systems: []orphans.Import{{Name: "?" + r.URL.RawQuery, Objects: []map[string]any{other}}}}
		}),
		"NONE":  answer(http.StatusNotFound, func(*http.Request) any { return "404 page not found" }),
		"WRONG": answer(http.StatusBadRequest, func(*http.Request) any { return "wrong question: the selector: unable to parse\n" }),
	}
	runScripts(t, "import", testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
		for name, url := range endpoints {
			env.Setenv(name, url)
		}
		return nil
	}})
}
