// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
)

// auditManager is as much of a manager as is needed to serve audits.
type auditManager struct {
	manager.Manager
	scheme  *runtime.Scheme
	handler http.Handler
}

func (m *auditManager) GetScheme() *runtime.Scheme { return m.scheme }

func (m *auditManager) AddMetricsServerExtraHandler(_ string, handler http.Handler) error {
	m.handler = handler
	return nil
}

// What a real server has is compared with the Streams of all namespaces that are on it.
func TestAudits(t *testing.T) {
	address := newServer(t)
	js := newJetStream(t, address)
	for name, owner := range map[string]string{"ORDERS": "u1", "LEAK": "gone", "FOREIGN": ""} {
		config := jetstream.StreamConfig{Name: name, Subjects: []string{name}}
		if owner != "" {
			config.Metadata = map[string]string{ownerKey: owner}
		}
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	kept, lost, elsewhere := newStream("u1"), newStream("u2"), newStream("u3")
	lost.Name, elsewhere.Name, elsewhere.Namespace = "lost", "elsewhere", "other"
	kept.Annotations = map[string]string{external.IDAnnotation: "ORDERS"}
	lost.Annotations = map[string]string{external.IDAnnotation: "LOST"}
	elsewhere.Annotations, elsewhere.Spec.Server = kept.Annotations, v1.Server{Address: "nats://127.0.0.1:1"}
	c := fake.NewClientBuilder().WithScheme(simScheme(t)).WithObjects(kept, lost, elsewhere).Build()
	mgr := &auditManager{scheme: simScheme(t)}
	s := newServers(address, dialNATS)
	if err := external.ServeAudits(mgr, s.audits(c, c)); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, external.AuditPath, nil))
	want := `{"systems":[{"name":"nats://127.0.0.1:1","error":"listing the resources: connecting to the server at nats://127.0.0.1:1: nats: no servers available for connection"},` +
		`{"name":"` + address + `","orphans":[{"id":"LEAK","owner":"gone"}],"missing":[{"group":"nats.ctrlkit.dev","kind":"Stream","namespace":"default","name":"lost","id":"LOST"}]}]}` + "\n"
	if diff := cmp.Diff(want, answer.Body.String()); diff != "" || answer.Code != http.StatusOK {
		t.Errorf("%d (-want +got):\n%s", answer.Code, diff)
	}
	if err := s.pool.CloseAll(); err != nil {
		t.Error(err)
	}
}
