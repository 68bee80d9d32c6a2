// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
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

// The manifests of streams that exist have specs by which nothing is to be changed but the owner.
func TestImports(t *testing.T) {
	address := newServer(t)
	js := newJetStream(t, address)
	for i := range 200 {
		config := jetstream.StreamConfig{Name: fmt.Sprintf("Stream_%d", i), Subjects: []string{fmt.Sprintf("b.%d", i), fmt.Sprintf("a.%d", i)}, Storage: jetstream.MemoryStorage}
		switch i % 4 {
		case 1:
			config.MaxMsgs, config.MaxAge = int64(i), time.Hour
		case 2:
			config.Retention, config.Discard = jetstream.WorkQueuePolicy, jetstream.DiscardNew
		case 3:
			config.Metadata = map[string]string{"team": "web"}
		}
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OWNED", Subjects: []string{"c"}, Metadata: map[string]string{ownerKey: "u1"}}); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(simScheme(t)).Build()
	s := newServers(address, dialNATS)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "MIRROR", Mirror: &jetstream.StreamSource{Name: "OWNED"}}); err != nil {
		t.Fatal(err)
	}
	// Streams of two namespaces use the server without credentials.
	system := &auditedServer{servers: s, client: c, address: address, accounts: map[account]bool{{"blog", ""}: true, {"shop", ""}: true}}
	all, err := external.Import(t.Context(), system, func(context.Context) ([]*v1.Stream, error) { return nil, nil }, nil)
	if err == nil || err.Error() != "MIRROR: it has no subjects, as a mirror, which a Stream can't be" || len(all) != 200 {
		t.Fatalf("%d Streams, error %v", len(all), err)
	}
	for _, obj := range all {
		obj.UID = "new"
		name, err := streamName(obj)
		if err != nil || name != external.IDOf(obj) || strings.Contains(obj.Name, "_") || obj.Spec.Server.Address != "" || obj.Namespace != "" {
			t.Errorf("name %q, error %v of %+v", name, err, obj)
		}
		client, err := streams{s}.Connect(t.Context(), &step.Request[*v1.Stream]{Object: obj, Client: c})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := client.Observe(t.Context(), obj, name)
		if err := errors.Join(err, client.(*streamClient).Close()); err != nil || !slices.Equal(seen.Drift, []string{"metadata.uid"}) {
			t.Errorf("%s: drift %v, error %v", name, seen.Drift, err)
		}
	}
	if err := s.pool.CloseAll(); err != nil {
		t.Error(err)
	}
}
