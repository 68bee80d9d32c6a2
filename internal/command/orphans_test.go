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
	"github.com/ctrlkit/ctrlkit/journal"
)

// TestOrphans runs scripts beside operators whose audits have found something, nothing, or could
// not run, and one that serves none.
func TestOrphans(t *testing.T) {
	found := orphans.System{
		Name: "nats://a", Orphans: []orphans.Resource{{ID: "LEAK", Owner: "u1"}},
		Missing: []orphans.Object{{Object: journal.Object{Kind: "Stream", Namespace: "shop", Name: "orders"}, ID: "ORDERS"}},
	}
	failed := orphans.System{Name: "nats://b", Error: "connection refused"}
	endpoints := map[string]string{
		"FOUND":    serveReport(t, http.StatusOK, orphans.Report{Systems: []orphans.System{found}}),
		"NOTHING":  serveReport(t, http.StatusOK, orphans.Report{Systems: []orphans.System{{Name: "nats://a"}}}),
		"FAILED":   serveReport(t, http.StatusOK, orphans.Report{Systems: []orphans.System{{Name: "nats://a"}, failed}}),
		"PARTLY":   serveReport(t, http.StatusOK, orphans.Report{Systems: []orphans.System{found, failed}}),
		"NONE":     serveReport(t, http.StatusNotFound, "404 page not found"),
		"GUARDED":  serveReport(t, http.StatusForbidden, "Forbidden"),
		"BROKEN":   serveReport(t, http.StatusInternalServerError, "finding out which systems there are: no API server"),
		"STRANGER": serveReport(t, http.StatusOK, []string{"hello"}),
	}
	runScripts(t, "orphans", testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
		for name, url := range endpoints {
			env.Setenv(name, url)
		}
		return nil
	}})
}

// serveReport serves an answer where operators do, and nothing elsewhere.
func serveReport(t *testing.T, code int, answer any) (url string) {
	mux := http.NewServeMux()
	mux.HandleFunc(orphans.Path, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		if text, ok := answer.(string); ok {
			_, _ = w.Write([]byte(text))
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
