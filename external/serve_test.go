// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/journal"
)

// servingManager is as much of a manager as is needed to serve.
type servingManager struct {
	manager.Manager
	client  client.Client
	path    string
	handler http.Handler
}

func (m *servingManager) GetClient() client.Client { return m.client }

func (m *servingManager) GetAPIReader() client.Reader { return m.client }

func (*servingManager) GetScheme() *runtime.Scheme { return siloScheme }

func (m *servingManager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	m.path, m.handler = path, handler
	return nil
}

type listing struct {
	all []external.Resource
	err error
}

func (l listing) List(context.Context) ([]external.Resource, error) { return l.all, l.err }

func TestServeAudits(t *testing.T) {
	silo := func(name, id string) *Silo {
		return &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-1", Annotations: map[string]string{external.IDAnnotation: id}}}
	}
	objects := func(context.Context) ([]external.Holder, error) {
		return []external.Holder{{Object: silo("logs", "S1")}}, nil
	}
	var systems []external.SystemAudit
	var broken error
	mgr := &servingManager{}
	if err := external.ServeAudits(mgr, func(context.Context) ([]external.SystemAudit, error) { return systems, broken }); err != nil || mgr.path != orphans.Path {
		t.Fatalf("served at %q, error %v", mgr.path, err)
	}
	ask := func(method string) (int, string) {
		answer := httptest.NewRecorder()
		mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, orphans.Path, nil))
		return answer.Code, answer.Body.String()
	}
	if code, text := ask(http.MethodGet); code != 200 || text != "{\"systems\":[]}\n" {
		t.Errorf("without a system: %d %s", code, text)
	}
	systems = []external.SystemAudit{
		external.AuditOf("b", listing{err: errors.New("connection refused")}, objects),
		external.AuditOf("a", listing{all: []external.Resource{{ID: "LEAK", Owner: "gone"}, {ID: "FOREIGN"}}}, objects),
	}
	code, text := ask(http.MethodGet)
	var got orphans.Report
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	want := orphans.Report{Systems: []orphans.System{
		{Name: "a", Orphans: []orphans.Resource{{ID: "LEAK", Owner: "gone"}}, Missing: []orphans.Object{
			{Object: journal.Object{Group: testkind.Version.Group, Kind: "Silo", Namespace: "shop", Name: "logs"}, ID: "S1"},
		}},
		{Name: "b", Error: "listing the resources: connection refused"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	broken = errors.New("no API server")
	if code, text := ask(http.MethodGet); code != 500 || text != "finding out which systems there are: no API server\n" {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := ask(http.MethodPost); code != 405 {
		t.Errorf("a POST is answered with %d", code)
	}
}
