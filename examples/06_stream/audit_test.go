// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/06_stream/natsserver"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/step"
)

// auditManager is as much of a manager as is needed to serve audits.
type auditManager struct {
	manager.Manager
	client  client.Client
	scheme  *runtime.Scheme
	handler http.Handler
}

func (m *auditManager) GetClient() client.Client { return m.client }

func (m *auditManager) GetAPIReader() client.Reader { return m.client }

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
	mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, orphans.Path, nil))
	want := `{"systems":[{"name":"nats://127.0.0.1:1","error":"listing the resources: connecting to the server at nats://127.0.0.1:1: nats: no servers available for connection"},` +
		`{"name":"` + address + `","orphans":[{"id":"LEAK","owner":"gone"}],"missing":[{"group":"nats.ctrlkit.dev","kind":"Stream","namespace":"default","name":"lost","id":"LOST"}]}]}` + "\n"
	if diff := cmp.Diff(want, answer.Body.String()); diff != "" || answer.Code != http.StatusOK {
		t.Errorf("%d (-want +got):\n%s", answer.Code, diff)
	}
	closePool(t, s)
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
	system := newAuditedServer(s, c, c, address, nil)
	all, err := external.Import(t.Context(), system, system.objects, nil)
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
	closePool(t, s)
}

// newAccounts starts a server with the accounts shop and blog, with two users of shop, and perhaps one for
// clients without credentials, and returns its address and a way to make streams.
func newAccounts(t *testing.T, open bool) (address string, create func(user, stream, owner string)) {
	shop, blog, others := server.NewAccount("SHOP"), server.NewAccount("BLOG"), server.NewAccount("OTHERS")
	s, stop, err := natsserver.Start(t.TempDir(), func(o *server.Options) {
		o.Accounts = []*server.Account{shop, blog, others}
		for user, account := range map[string]*server.Account{"shop": shop, "shop2": shop, "blog": blog, "others": others} {
			o.Users = append(o.Users, &server.User{Username: user, Password: "right", Account: account})
		}
		if open {
			o.NoAuthUser = "others"
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for _, name := range []string{"SHOP", "BLOG", "OTHERS"} {
		account, err := s.LookupAccount(name)
		if err := errors.Join(err, account.EnableJetStream(nil, nil)); err != nil {
			t.Fatal(err)
		}
	}
	address = s.ClientURL()
	return address, func(user, stream, owner string) {
		t.Helper()
		config := jetstream.StreamConfig{Name: stream, Subjects: []string{strings.ToLower(stream)}}
		if owner != "" {
			config.Metadata = map[string]string{ownerKey: owner}
		}
		if _, err := newJetStream(t, address, nats.UserInfo(user, "right")).CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
}

// The names of streams are unique in an account only, and several Secrets may be for one.
func TestAccounts(t *testing.T) {
	for name, open := range map[string]bool{"clients need credentials": false, "clients without credentials have an account": true} {
		t.Run(name, func(t *testing.T) { testAccounts(t, open) })
	}
}

func testAccounts(t *testing.T, open bool) {
	address, create := newAccounts(t, open)
	for _, user := range []string{"shop", "blog", "others"} {
		create(user, "ORDERS", "")
	}
	create("shop", "TAKEN", "u1")
	create("shop", "ALSO", "u5")
	create("blog", "TAKEN", "")
	create("blog", "LOST", "gone")
	var objects []client.Object
	for namespace, user := range map[string]string{"shop": "shop", "shop2": "shop2", "blog": "blog"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nats"}, Data: map[string][]byte{"username": []byte(user), "password": []byte("right")}})
	}
	for uid, of := range map[types.UID][2]string{"u1": {"shop", "TAKEN"}, "u2": {"blog", "BLOG"}, "u3": {"shop", "LOST"}, "u5": {"shop2", "ALSO"}} {
		stream := newStream(uid)
		stream.Namespace, stream.Name, stream.Spec.Server = of[0], strings.ToLower(of[1]), v1.Server{CredentialsSecret: "nats"}
		stream.Annotations = map[string]string{external.IDAnnotation: of[1]}
		objects = append(objects, stream)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1.GroupVersion.WithKind("Stream"), meta.RESTScopeNamespace)
	c := fake.NewClientBuilder().WithScheme(simScheme(t)).WithRESTMapper(mapper).WithObjects(objects...).Build()
	mgr, s := &auditManager{client: c, scheme: simScheme(t)}, newServers(address, dialNATS)
	exampletest.Must(t, external.ServeAudits(mgr, s.audits(c, c)))
	answer := httptest.NewRecorder()
	mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, orphans.Path, nil))
	want := `{"systems":[{"name":"` + address + `","orphans":[{"scope":"BLOG","id":"LOST","owner":"gone"}],"missing":[` +
		`{"group":"nats.ctrlkit.dev","kind":"Stream","namespace":"blog","name":"blog","id":"BLOG"},{"group":"nats.ctrlkit.dev","kind":"Stream","namespace":"shop","name":"lost","id":"LOST"}]}]}` + "\n"
	if diff := cmp.Diff(want, answer.Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := external.ServeImports(mgr, s.imports(c, c, external.Calls[*v1.Stream]{})); err != nil {
		t.Fatal(err)
	}
	answer = httptest.NewRecorder()
	mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, orphans.ImportPath+"?namespace=mine", nil))
	var got struct {
		Systems []struct {
			Error   string
			Objects []*v1.Stream
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var streams []string
	for _, obj := range got.Systems[0].Objects {
		streams = append(streams, obj.Namespace+"/"+obj.Name+" with "+obj.Spec.Server.CredentialsSecret)
	}
	wanted := []string{"blog/orders with nats", "blog/taken with nats", "shop/orders with nats"}
	if open {
		wanted = slices.Insert(wanted, 2, "mine/orders with ")
	}
	if diff := cmp.Diff(wanted, streams); diff != "" || got.Systems[0].Error != "" {
		t.Errorf("error %q (-want +got):\n%s", got.Systems[0].Error, diff)
	}
	closePool(t, s)
}

// closePool closes the connections, as the end of the operator does.
func closePool(t *testing.T, s *servers) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.pool.Start(ctx); err != nil {
		t.Error(err)
	}
}
