// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/internal/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator"
)

// The events that the observer receives are explained beside the metrics, and counted in them. A
// second manager of the process shares the series.
func TestManager(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		served := &recordingManager{}
		if err := operator.Observe(served); err != nil {
			t.Fatalf("the %s manager: %v", name, err)
		}
		run := journal.NewRun(journal.Observers(operator.ObserversOf(served)...), "1", "database", journal.Object{Kind: "Database", Namespace: "shop", Name: name})
		run.Note(t.Context(), journal.Started{})
		run.Note(t.Context(), journal.Finished{Result: journal.ResultDone})

		answer := httptest.NewRecorder()
		served.handlers[explanation.Path].ServeHTTP(answer, httptest.NewRequest(http.MethodGet, explanation.Path+"?kind=Database&namespace=shop&name="+name, nil))
		var report explanation.Report
		if err := json.Unmarshal(answer.Body.Bytes(), &report); err != nil || len(report.Controllers) != 1 || report.Controllers[0].Result != journal.ResultDone {
			t.Errorf("the %s manager answers %s (%v)", name, answer.Body, err)
		}
	}
	if n, err := testutil.GatherAndCount(ctrlmetrics.Registry, "ctrlkit_reconciles_total"); err != nil || n != 1 {
		t.Errorf("%d series of reconciles, error %v, want one", n, err)
	}
}

// recordingManager is as much of a manager as is needed to serve.
type recordingManager struct {
	manager.Manager
	handlers map[string]http.Handler
}

func (*recordingManager) Add(manager.Runnable) error { return nil }

func (m *recordingManager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	if m.handlers == nil {
		m.handlers = make(map[string]http.Handler)
	}
	m.handlers[path] = handler
	return nil
}
