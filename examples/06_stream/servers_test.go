// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// closableServer records when its connection is closed.
type closableServer struct {
	Server
	closed *[]string
	name   string
}

func (s closableServer) Close() error {
	*s.closed = append(*s.closed, s.name)
	return nil
}

// A connection is shared until the credentials change, and closed when its last user is done.
func TestConnectionsAreShared(t *testing.T) {
	var dialed, closed []string
	s := newServers("nats://standard", func(_ context.Context, address string, credentials map[string][]byte) (Server, error) {
		name := address + " " + string(credentials["token"])
		dialed = append(dialed, name)
		return closableServer{closed: &closed, name: name}, nil
	})
	secret := newCredentials("one")
	cluster := fake.NewClientBuilder().WithScheme(simScheme(t)).WithObjects(secret).Build()
	lease := func(server v1.Server) *external.Lease[Server] {
		t.Helper()
		l, err := s.lease(t.Context(), cluster, "default", server)
		exampletest.Must(t, err)
		return l
	}
	with := v1.Server{CredentialsSecret: secret.Name}
	first, second := lease(with), lease(with)
	other, elsewhere := lease(v1.Server{}), lease(v1.Server{Address: "nats://other"})

	secret.Data["token"] = []byte("two")
	exampletest.Must(t, cluster.Update(t.Context(), secret))
	third := lease(with)
	if diff := cmp.Diff([]string{"nats://standard one", "nats://standard ", "nats://other ", "nats://standard two"}, dialed); diff != "" {
		t.Errorf("dialed (-want +got):\n%s", diff)
	}
	if err := first.Release(); err != nil || closed != nil {
		t.Errorf("one of two users is done: closed %q and error %v", closed, err)
	}
	if err := errors.Join(second.Release(), third.Release(), other.Release(), elsewhere.Release()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"nats://standard one"}, closed); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
}

// A Consumer waits for a Stream that can be used. Once it uses that, nothing of the Stream stops it
// or its deletion.
func TestConsumerConnects(t *testing.T) {
	stream := func(change ...func(*v1.Stream)) *v1.Stream {
		s := newStream("u1")
		s.Annotations = map[string]string{external.IDAnnotation: "ORDERS"}
		s.Status.Conditions = []metav1.Condition{{Type: external.ConditionAvailable, Status: metav1.ConditionTrue}}
		for _, f := range change {
			f(s)
		}
		return s
	}
	deleted := func(s *v1.Stream) { s.DeletionTimestamp, s.Finalizers = new(metav1.Now()), []string{"a/b"} }
	unavailable := func(s *v1.Stream) { s.Status.Conditions = nil }
	using := func(c *v1.Consumer) {
		c.Annotations = map[string]string{newStreamReference().Annotation(): "default/orders/u1"}
	}
	going := func(c *v1.Consumer) { c.DeletionTimestamp = new(metav1.Now()) }
	known := func(c *v1.Consumer) { c.Status.Stream, c.Status.Server = "BEFORE", &v1.Server{} }
	for _, tt := range []struct {
		name   string
		stream *v1.Stream
		obj    []func(*v1.Consumer)
		found  string // the stream
		fails  string // what is waited for, or has failed
	}{
		{name: "available", stream: stream(), found: "ORDERS"},
		{name: "missing", fails: "Stream default/orders"},
		{name: "not available", stream: stream(unavailable), fails: "Stream default/orders to be ready: its stream is not available"},
		{name: "not claimed", stream: stream(func(s *v1.Stream) { s.Annotations = nil }), fails: "Stream default/orders to be ready: its stream is not available"},
		{name: "deleted", stream: stream(deleted), fails: "Stream default/orders, which is being deleted, to be created again"},
		{name: "deleted, the consumer exists", stream: stream(deleted, unavailable), obj: []func(*v1.Consumer){using}, found: "ORDERS"},
		{name: "not available, the consumer exists", stream: stream(unavailable), obj: []func(*v1.Consumer){using}, found: "ORDERS"},
		{name: "missing, the consumer exists", obj: []func(*v1.Consumer){using, known}, found: "BEFORE", fails: "Stream default/orders"},
		{name: "deletion", stream: stream(unavailable), obj: []func(*v1.Consumer){using, going}, found: "ORDERS"},
		{name: "deletion, the Stream is gone", obj: []func(*v1.Consumer){using, going, known}, found: "BEFORE"},
		{name: "deletion, nothing is known", obj: []func(*v1.Consumer){using, going}, fails: "Stream default/orders"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var objects []client.Object
			if tt.stream != nil {
				objects = append(objects, tt.stream)
			}
			obj := newConsumer("u2")
			for _, change := range tt.obj {
				change(obj)
			}
			c := consumers{newServers("nats://standard", dialNothing), newStreamReference()}
			set, err := condition.NewSet(obj, condition.Options{Declared: c.streamOf.Conditions()})
			exampletest.Must(t, err)
			req := &step.Request[*v1.Consumer]{Object: obj, Conditions: set, Client: fake.NewClientBuilder().WithScheme(simScheme(t)).WithObjects(objects...).Build()}
			if obj.DeletionTimestamp.IsZero() {
				err = c.streamOf.Await(t.Context(), req)
			}
			if err == nil {
				_, err = c.Connect(t.Context(), req)
			}
			got := ""
			if waits := ctrlkit.Waits(err); len(waits) > 0 {
				got = waits[0].For
			} else if err != nil {
				got = err.Error()
			}
			if got != tt.fails || obj.Status.Stream != tt.found {
				t.Errorf("found %q and failed with %q, want %q and %q", obj.Status.Stream, got, tt.found, tt.fails)
			}
		})
	}
}

func dialNothing(context.Context, string, map[string][]byte) (Server, error) { return nil, nil }

// Without the Secret the error says which keys it needs.
func TestMissingCredentials(t *testing.T) {
	s := newServers("nats://standard", dialNATS)
	_, err := s.lease(t.Context(), fake.NewClientBuilder().WithScheme(simScheme(t)).Build(), "default", v1.Server{CredentialsSecret: "none"})
	if got := failure.Classify(err); got.Reason != "CredentialsMissing" || !strings.Contains(err.Error(), "there is no Secret default/none: create it with the keys") {
		t.Errorf("got %v, %+v", err, got)
	}
	_, err = s.lease(t.Context(), fake.NewClientBuilder().WithScheme(simScheme(t)).WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"}}).Build(), "default", v1.Server{CredentialsSecret: "none"})
	if err == nil || !strings.Contains(err.Error(), "with the credentials of Secret default/none") {
		t.Errorf("an empty Secret: error %v", err)
	}
}
