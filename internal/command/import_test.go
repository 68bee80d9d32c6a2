// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
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
	report := func(systems ...orphans.Import) orphans.Imports { return orphans.Imports{Systems: systems} }
	hinted := report(found)
	hinted.Adoptions = []orphans.Adoption{{Namespace: "shop", Patterns: []string{"ORDERS", `it's\*`}}}
	endpoints := map[string]string{
		"FOUND":   serveReport(t, orphans.ImportPath, http.StatusOK, report(found)),
		"HINTED":  serveReport(t, orphans.ImportPath, http.StatusOK, hinted),
		"ENDED":   serveReport(t, orphans.ImportPath, http.StatusOK, orphans.Imports{Progress: &orphans.Progress{Done: 1, Of: 2}}),
		"NOTHING": serveReport(t, orphans.ImportPath, http.StatusOK, report(orphans.Import{Name: "nats://a"})),
		"PARTLY":  serveReport(t, orphans.ImportPath, http.StatusOK, report(found, orphans.Import{Name: "nats://b", Error: "connection refused"})),
		"ECHO": serveReport(t, orphans.ImportPath, http.StatusOK, func(r *http.Request) any {
			return report(orphans.Import{Name: "?" + r.URL.RawQuery, Objects: []map[string]any{other}})
		}),
		"NONE":  serveReport(t, orphans.ImportPath, http.StatusNotFound, "404 page not found"),
		"WRONG": serveReport(t, orphans.ImportPath, http.StatusBadRequest, "wrong question: the selector: unable to parse\n"),
	}
	runScripts(t, "import", testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
		for name, url := range endpoints {
			env.Setenv(name, url)
		}
		return nil
	}})
}
