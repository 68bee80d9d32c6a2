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

	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
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
		"FOUND":    serveReport(t, orphans.Path, http.StatusOK, orphans.Report{Systems: []orphans.System{found}}),
		"NOTHING":  serveReport(t, orphans.Path, http.StatusOK, orphans.Report{Systems: []orphans.System{{Name: "nats://a"}}}),
		"FAILED":   serveReport(t, orphans.Path, http.StatusOK, orphans.Report{Systems: []orphans.System{{Name: "nats://a"}, failed}}),
		"PARTLY":   serveReport(t, orphans.Path, http.StatusOK, orphans.Report{Systems: []orphans.System{found, failed}}),
		"NONE":     serveReport(t, orphans.Path, http.StatusNotFound, "404 page not found"),
		"GUARDED":  serveReport(t, orphans.Path, http.StatusForbidden, "Forbidden"),
		"BROKEN":   serveReport(t, orphans.Path, http.StatusInternalServerError, "finding out which systems there are: no API server"),
		"STRANGER": serveReport(t, orphans.Path, http.StatusOK, []string{"hello"}),
	}
	runScripts(t, "orphans", testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
		for name, url := range endpoints {
			env.Setenv(name, url)
		}
		return nil
	}})
}

// serveReport serves an answer at a path, and nothing elsewhere. An answer may be a function of the
// request.
func serveReport(t *testing.T, path string, code int, answer any) (url string) {
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		switch answer := answer.(type) {
		case string:
			_, _ = w.Write([]byte(answer))
		case func(*http.Request) any:
			_ = json.NewEncoder(w).Encode(answer(r))
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
