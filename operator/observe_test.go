// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator"
)

// The events that the observer receives are explained beside the metrics, and counted in them. A
// second manager of the process shares the series.
func TestObserve(t *testing.T) {
	withRegistry(t)
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
	added    []manager.Runnable
}

func (*recordingManager) Elected() <-chan struct{} { return nil }

func (m *recordingManager) Add(r manager.Runnable) error {
	m.added = append(m.added, r)
	return nil
}

func (m *recordingManager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	if m.handlers == nil {
		m.handlers = make(map[string]http.Handler)
	}
	m.handlers[path] = handler
	return nil
}

// Each manager has observers of its own, and none once it has ended.
func TestObserversOf(t *testing.T) {
	withRegistry(t)
	first, second, third := &recordingManager{}, &recordingManager{}, &recordingManager{}
	for _, mgr := range []*recordingManager{first, second} {
		if err := operator.Observe(mgr, operator.WithPage()); err != nil {
			t.Fatal(err)
		}
	}
	run := journal.NewRun(journal.Observers(operator.ObserversOf(first)...), "1", "database", journal.Object{Kind: "Database", Namespace: "shop", Name: "db"})
	run.Note(t.Context(), journal.Started{})
	for mgr, want := range map[*recordingManager]int{first: http.StatusOK, second: http.StatusNotFound} {
		answer := httptest.NewRecorder()
		mgr.handlers[explanation.Path].ServeHTTP(answer, httptest.NewRequest(http.MethodGet, explanation.Path+"?kind=Database&namespace=shop&name=db", nil))
		if answer.Code != want {
			t.Errorf("a manager answers %d %s, want %d", answer.Code, answer.Body, want)
		}
	}
	if all := operator.ObserversOf(third); len(all) != 0 || operator.ShardOf(first) != nil {
		t.Errorf("%d observers of a manager that is not observed, and the shard %v", len(all), operator.ShardOf(first))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, runnable := range first.added {
		if err := runnable.Start(ended); err != nil {
			t.Error(err)
		}
	}
	if ofFirst, ofSecond := len(operator.ObserversOf(first)), len(operator.ObserversOf(second)); ofFirst != 0 || ofSecond != 1 {
		t.Errorf("%d and %d observers when the first manager has ended, want 0 and 1", ofFirst, ofSecond)
	}
}

// withRegistry has a test use an empty registry of metrics: the series of others are left alone.
func withRegistry(t *testing.T) {
	t.Helper()
	before := ctrlmetrics.Registry
	ctrlmetrics.Registry = prometheus.NewRegistry()
	t.Cleanup(func() { ctrlmetrics.Registry = before })
}
