// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/06_stream/natsserver"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
)

// newServer starts a NATS server for a test.
func newServer(t *testing.T, change ...func(*server.Options)) (address string) {
	t.Helper()
	s, stop, err := natsserver.Start(t.TempDir(), change...)
	exampletest.Must(t, err)
	t.Cleanup(stop)
	return s.ClientURL()
}

// newJetStream returns a NATS client, as other people use it.
func newJetStream(t *testing.T, address string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(address, options...)
	exampletest.Must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	exampletest.Must(t, err)
	return js
}

func newLease(t *testing.T, address string) *external.Lease[Server] {
	t.Helper()
	s := newServers(address, dialNATS)
	lease, err := s.lease(t.Context(), nil, "", v1.Server{})
	exampletest.Must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(lease.Release(), lease.Conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return lease
}

func newStream(uid types.UID) *v1.Stream {
	return &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders", UID: uid}, Spec: v1.StreamSpec{
		Name: "ORDERS", Subjects: []string{"orders.>"}, Retention: v1.RetentionLimits, Storage: v1.StorageFile, Discard: v1.DiscardOld, Replicas: 1,
		MaxMessages: new(int64(1000)), MaxAge: &metav1.Duration{Duration: time.Hour}, ConnectionSecret: "orders-connection",
	}}
}

func newConsumer(uid types.UID) *v1.Consumer {
	return &v1.Consumer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "billing", UID: uid}, Spec: v1.ConsumerSpec{
		Stream: "orders", Name: "billing", FilterSubjects: []string{"orders.paid"}, DeliverPolicy: v1.DeliverAll,
		AckWait: &metav1.Duration{Duration: 30 * time.Second}, MaxDeliver: -1,
	}}
}

// expect observes, and fails the test if the state or the drift are others.
func expect[T any](t *testing.T, when string, f func(context.Context, T, string) (external.Observation, error), obj T, id string, state external.State, drift ...string) external.Observation {
	t.Helper()
	seen, err := f(t.Context(), obj, id)
	if diff := cmp.Diff(drift, seen.Drift); err != nil || seen.State != state || diff != "" {
		t.Errorf("%s: %s and error %v, want %s; drift (-want +got):\n%s", when, seen.State, err, state, diff)
	}
	return seen
}

func TestStreamClient(t *testing.T) {
	address := newServer(t)
	js, c, obj := newJetStream(t, address), &streamClient{lease: newLease(t, address), address: address}, newStream("u1")
	expect(t, "at first", c.Observe, obj, "ORDERS", external.Absent)
	for range 2 {
		if id, err := c.Create(t.Context(), obj, external.Creation{Name: "ORDERS"}); id != "ORDERS" || err != nil {
			t.Fatalf("create has returned %q and error %v", id, err)
		}
	}
	seen := expect(t, "created", c.Observe, obj, "ORDERS", external.UpToDate)
	if want := map[string][]byte{"address": []byte(address), "stream": []byte("ORDERS"), "subjects": []byte("orders.>")}; seen.Owner != "u1" || cmp.Diff(want, seen.Connection) != "" {
		t.Errorf("the owner is %q and the connection %q", seen.Owner, seen.Connection)
	}

	// Another client changes what the spec has, and what it does not have.
	stream, err := js.Stream(t.Context(), "ORDERS")
	exampletest.Must(t, err)
	edited := stream.CachedInfo().Config
	edited.Subjects, edited.MaxMsgs, edited.Description = []string{"other"}, 5, "edited by hand"
	if _, err := js.UpdateStream(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	expect(t, "edited", c.Observe, obj, "ORDERS", external.Drifted, "spec.subjects", "spec.maxMessages")
	exampletest.Must(t, c.Update(t.Context(), obj, "ORDERS"))
	expect(t, "updated", c.Observe, obj, "ORDERS", external.UpToDate)
	if c.now.Description != "edited by hand" {
		t.Errorf("the update has overwritten the description, which is not ours: %q", c.now.Description)
	}

	for range 2 {
		exampletest.Must(t, c.Delete(t.Context(), obj, "ORDERS"))
	}
	expect(t, "deleted", c.Observe, obj, "ORDERS", external.Absent)
}

// A field that NATS can't change is named, with what to do, and nothing else is changed.
func TestImmutableFields(t *testing.T) {
	for _, tt := range []struct {
		path, want string
		change     func(*v1.Stream)
	}{
		{"spec.storage", "NATS can't change spec.storage from File to Memory: set it back to File, or create another object", func(s *v1.Stream) { s.Spec.Storage = v1.StorageMemory }},
		{"spec.retention", "NATS can't change spec.retention from Limits to WorkQueue: set it back to Limits, or create another object", func(s *v1.Stream) { s.Spec.Retention = v1.RetentionWorkQueue }},
	} {
		t.Run(tt.path, func(t *testing.T) {
			address, obj := newServer(t), newStream("u1")
			c := &streamClient{lease: newLease(t, address), address: address}
			if _, err := c.Create(t.Context(), obj, external.Creation{Name: "ORDERS"}); err != nil {
				t.Fatal(err)
			}
			tt.change(obj)
			expect(t, "changed", c.Observe, obj, "ORDERS", external.Drifted, tt.path)
			err := c.Update(t.Context(), obj, "ORDERS")
			if got := failure.Classify(err); err == nil || err.Error() != tt.want || got.Class != failure.ClassTerminal || got.Reason != ReasonImmutable {
				t.Errorf("got %v, %+v; want %s", err, got, tt.want)
			}
			expect(t, "after the refused update", c.Observe, obj, "ORDERS", external.Drifted, tt.path)
		})
	}
	t.Run("can be changed", func(t *testing.T) {
		address, obj := newServer(t), newStream("u1")
		c := &streamClient{lease: newLease(t, address), address: address}
		if _, err := c.Create(t.Context(), obj, external.Creation{Name: "ORDERS"}); err != nil {
			t.Fatal(err)
		}
		obj.Spec.Retention, obj.Spec.Discard, obj.Spec.MaxBytes, obj.Spec.MaxMessageBytes = v1.RetentionInterest, v1.DiscardNew, new(int64(1<<20)), new(int32(1000))
		expect(t, "changed", c.Observe, obj, "ORDERS", external.Drifted, "spec.retention", "spec.discard", "spec.maxBytes", "spec.maxMessageBytes")
		exampletest.Must(t, c.Update(t.Context(), obj, "ORDERS"))
		expect(t, "updated", c.Observe, obj, "ORDERS", external.UpToDate)
	})
}

// What the server answers is an error that a person can clear; the stream of another is not taken.
func TestRefusedStreams(t *testing.T) {
	address := newServer(t)
	c, first, second := &streamClient{lease: newLease(t, address)}, newStream("u1"), newStream("u2")
	if _, err := c.Create(t.Context(), first, external.Creation{Name: "ORDERS"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ORDERS", "OVERLAPPING"} {
		_, err := c.Create(t.Context(), second, external.Creation{Name: name})
		if got := failure.Classify(err); got.Class != failure.ClassInvalid {
			t.Errorf("create of %s: error %v, of class %s", name, err, got.Class)
		}
	}
	second.Spec.Subjects, second.Spec.Replicas = []string{"more"}, 3 // of one server
	if _, err := c.Create(t.Context(), second, external.Creation{Name: "CLUSTERED"}); failure.Classify(err).Class != failure.ClassInvalid {
		t.Errorf("replicas without a cluster: error %v", err)
	}
	expect(t, "the first", c.Observe, first, "ORDERS", external.UpToDate)
}

func TestConsumerClient(t *testing.T) {
	address := newServer(t)
	lease := newLease(t, address)
	js, c, obj := newJetStream(t, address), &consumerClient{lease: lease, address: address, stream: "ORDERS"}, newConsumer("u2")
	expect(t, "without a stream", c.Observe, obj, "billing", external.Absent)
	if _, err := c.Create(t.Context(), obj, external.Creation{Name: "billing"}); failure.Classify(err).Class != failure.ClassNotFound {
		t.Errorf("create without a stream: error %v, of class %s", err, failure.Classify(err).Class)
	}
	if _, err := (&streamClient{lease: lease}).Create(t.Context(), newStream("u1"), external.Creation{Name: "ORDERS"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if id, err := c.Create(t.Context(), obj, external.Creation{Name: "billing"}); id != "billing" || err != nil {
			t.Fatalf("create has returned %q and error %v", id, err)
		}
	}
	if seen := expect(t, "created", c.Observe, obj, "billing", external.UpToDate); seen.Owner != "u2" {
		t.Errorf("the owner is %q", seen.Owner)
	}
	edited := c.now
	edited.MaxDeliver, edited.Description = 7, "edited by hand"
	if _, err := js.UpdateConsumer(t.Context(), "ORDERS", edited); err != nil {
		t.Fatal(err)
	}
	obj.Spec.FilterSubjects = []string{"orders.sent", "orders.paid"}
	expect(t, "edited", c.Observe, obj, "billing", external.Drifted, "spec.filterSubjects", "spec.maxDeliver")
	exampletest.Must(t, c.Update(t.Context(), obj, "billing"))
	expect(t, "updated", c.Observe, obj, "billing", external.UpToDate)
	if c.now.Description != "edited by hand" {
		t.Errorf("the update has overwritten the description, which is not ours: %q", c.now.Description)
	}

	obj.Spec.DeliverPolicy = v1.DeliverNew
	expect(t, "another deliver policy", c.Observe, obj, "billing", external.Drifted, "spec.deliverPolicy")
	err := c.Update(t.Context(), obj, "billing")
	if got := failure.Classify(err); err == nil || !strings.HasPrefix(err.Error(), "NATS can't change spec.deliverPolicy from All to New") || got.Class != failure.ClassTerminal {
		t.Errorf("got %v, %+v", err, got)
	}
	for range 2 {
		exampletest.Must(t, c.Delete(t.Context(), obj, "billing"))
	}
	expect(t, "deleted", c.Observe, obj, "billing", external.Absent)
}

// The limits of an adopted stream become those of the spec, and those that it has stay.
func TestLateInitialize(t *testing.T) {
	address, obj := newServer(t), newStream("u1")
	js, c := newJetStream(t, address), &streamClient{lease: newLease(t, address)}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, MaxMsgs: 1, MaxBytes: 2000, MaxAge: time.Minute, MaxMsgSize: 100}); err != nil {
		t.Fatal(err)
	}
	expect(t, "of another", c.Observe, obj, "ORDERS", external.Drifted, "spec.maxMessages", "spec.maxAge", "metadata.uid")
	c.LateInitialize(obj)
	if got := obj.Spec; *got.MaxMessages != 1000 || got.MaxAge.Duration != time.Hour || *got.MaxBytes != 2000 || *got.MaxMessageBytes != 100 {
		t.Errorf("the limits are %d, %s, %d and %d", *got.MaxMessages, got.MaxAge.Duration, *got.MaxBytes, *got.MaxMessageBytes)
	}
}

// Wrong credentials are an error that names the server, and has none of them.
func TestCredentials(t *testing.T) {
	address := newServer(t, func(o *server.Options) { o.Username, o.Password = "operator", "right" })
	for _, tt := range []struct {
		name        string
		credentials map[string][]byte
		reason      string
	}{
		{"right", map[string][]byte{"username": []byte("operator"), "password": []byte("right")}, ""},
		{"wrong", map[string][]byte{"username": []byte("operator"), "password": []byte("s3cr3t-canary")}, "CredentialsRefused"},
		{"a token", map[string][]byte{"token": []byte("s3cr3t-canary")}, "CredentialsRefused"},
		{"none", nil, "CredentialsRefused"},
		{"an empty Secret", map[string][]byte{}, "CredentialsInvalid"},
		{"no file of credentials", map[string][]byte{"nats.creds": []byte("s3cr3t-canary")}, "CredentialsInvalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := dialNATS(t.Context(), address, tt.credentials)
			if err == nil {
				defer s.Close() //nolint:errcheck // it returns nil
			}
			if got := failure.Classify(err); (err == nil) != (tt.reason == "") || err != nil && (got.Reason != tt.reason || strings.Contains(err.Error(), "canary")) {
				t.Errorf("got %v, %+v; want the reason %q", err, got, tt.reason)
			}
		})
	}
}
