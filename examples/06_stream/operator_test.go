// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

var shared = ctrlkittest.SharedControlPlane{Options: controlplane.Options{Parts: controlplane.AllParts, CRDs: []string{"config/crd/bases"}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// A cluster is a real control plane with the operator, a NATS server, and clients of both as users
// have them.
type cluster struct {
	*exampletest.Cluster
	js      jetstream.JetStream
	address string
	counts  *counts
}

// startCluster starts everything. Admission policies put the finalizers on objects.
func startCluster(t *testing.T, poll time.Duration, policies ...string) *cluster {
	t.Helper()
	c := exampletest.NewCluster(t, &shared, simScheme(t), policies...)
	address := newServer(t)
	counts := &counts{namespace: c.Namespace}
	counts.changed.L = &counts.mu
	config, options := c.Operator(t, "stream")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, counts} })
	mgr, err := jetStream(settings{address: address, poll: poll, dial: counts.dial}).Manager(config, options)
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)
	return &cluster{c, newJetStream(t, address), address, counts}
}

// counts are the writes at the API server and the calls of NATS, in their order.
type counts struct {
	namespace string

	mu      sync.Mutex // for all below
	changed sync.Cond
	all     []string
	times   []time.Time
}

func (c *counts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.times = append(c.all, what), append(c.times, time.Now())
	c.changed.Broadcast()
}

// take waits for n writes and calls, and returns all since it was last called.
func (c *counts) take(n int) ([]string, []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.all) < n {
		c.changed.Wait()
	}
	all, times := c.all, c.times
	c.all, c.times = nil, nil
	return all, times
}

// counting is a transport that counts writes, without Kubernetes events and leases.
type counting struct {
	http.RoundTripper
	counts *counts
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") {
		_, path, _ := strings.Cut(r.URL.Path, "/namespaces/"+c.counts.namespace+"/")
		c.counts.add(r.Method + " " + path)
	}
	return c.RoundTripper.RoundTrip(r)
}

// countedServer counts calls for streams.
type countedServer struct {
	Server
	counts *counts
}

func (c *counts) dial(ctx context.Context, address string, credentials map[string][]byte) (Server, error) {
	s, err := dialNATS(ctx, address, credentials)
	return &countedServer{s, c}, err
}

func (s *countedServer) Stream(ctx context.Context, name string) (jetstream.StreamConfig, error) {
	s.counts.add("observe")
	return s.Server.Stream(ctx, name)
}

func (s *countedServer) CreateStream(ctx context.Context, config jetstream.StreamConfig) error {
	s.counts.add("create")
	return s.Server.CreateStream(ctx, config)
}

func (s *countedServer) DeleteStream(ctx context.Context, name string) error {
	s.counts.add("delete")
	return s.Server.DeleteStream(ctx, name)
}

func (c *cluster) stream(t *testing.T, name, what string, done func(*v1.Stream) bool) *v1.Stream {
	t.Helper()
	t.Logf("until Stream %s is %s", name, what)
	return exampletest.Await(t, c.Cluster, name, done)
}

func (c *cluster) consumer(t *testing.T, name, what string, done func(*v1.Consumer) bool) *v1.Consumer {
	t.Helper()
	t.Logf("until Consumer %s is %s", name, what)
	return exampletest.Await(t, c.Cluster, name, done)
}

// reconcileNow requests a reconcile of a Stream, and waits until it is acknowledged.
func (c *cluster) reconcileNow(t *testing.T, name, token string) *v1.Stream {
	t.Helper()
	obj := &v1.Stream{ObjectMeta: c.In(name)}
	c.Patch(t, obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, policy.ReconcileNowAnnotation, token))
	return c.stream(t, name, "acknowledged", func(s *v1.Stream) bool { return s.Status.LastHandledReconcileAt == token })
}

// config returns the configuration of a stream in NATS.
func (c *cluster) config(t *testing.T, name string) jetstream.StreamConfig {
	t.Helper()
	stream, err := c.js.Stream(t.Context(), name)
	exampletest.Must(t, err)
	return stream.CachedInfo().Config
}

var policies = []string{"config/admission/streams.yaml", "config/admission/consumers.yaml"}

// The operator does its work against a real control plane and a real NATS server.
func TestOperator(t *testing.T) {
	c := startCluster(t, time.Hour, policies...) // nothing is found by a poll
	c.Apply(t, "config/samples/stream.yaml")
	orders := c.stream(t, "orders", "ready", exampletest.Ready[*v1.Stream])
	billing := c.consumer(t, "billing", "ready", exampletest.Ready[*v1.Consumer])
	audit := c.consumer(t, "audit", "waiting", func(obj *v1.Consumer) bool {
		waits := meta.FindStatusCondition(obj.Status.Conditions, v1.ConditionStreamReady)
		return waits != nil && waits.Reason == "StreamNotFound"
	})
	ctrlkittest.CheckConditions(t, orders)
	ctrlkittest.CheckConditions(t, billing)
	ctrlkittest.CheckConditions(t, audit)
	if got := c.config(t, "ORDERS"); got.MaxMsgs != 10000 || got.MaxAge != 24*time.Hour || got.Metadata[ownerKey] != string(orders.UID) {
		t.Errorf("the stream in NATS: %+v", got)
	}
	consumer, err := c.js.Consumer(t.Context(), "ORDERS", billing.Status.Consumer)
	exampletest.Must(t, err)
	if got := consumer.CachedInfo().Config; got.FilterSubject+strings.Join(got.FilterSubjects, "") != "orders.paid" || got.MaxDeliver != 5 {
		t.Errorf("the consumer in NATS: %+v", got)
	}
	var secret corev1.Secret
	exampletest.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "orders-connection"}, &secret))
	if want := map[string][]byte{"address": []byte(c.address), "stream": []byte("ORDERS"), "subjects": []byte("orders.>")}; cmp.Diff(want, secret.Data) != "" || !metav1.IsControlledBy(&secret, orders) {
		t.Errorf("the connection Secret: %q of %v", secret.Data, secret.OwnerReferences)
	}

	t.Run("an edit by hand is repaired", func(t *testing.T) { checkRepair(t, c) })
	t.Run("an immutable field", func(t *testing.T) { checkImmutable(t, c) })
	t.Run("the deletion waits", func(t *testing.T) { checkDeletionOrder(t, c, orders, billing, &secret) })
	t.Run("the name of another", func(t *testing.T) { checkAdoption(t, c) })
	t.Run("wrong credentials", func(t *testing.T) { checkCredentials(t, c) })
}

// checkRepair changes and deletes the stream with a NATS client.
func checkRepair(t *testing.T, c *cluster) {
	edited := c.config(t, "ORDERS")
	edited.Subjects, edited.MaxMsgs = []string{"other.>"}, 1
	_, err := c.js.UpdateStream(t.Context(), edited)
	exampletest.Must(t, err)
	c.reconcileNow(t, "orders", "one")
	if got := c.config(t, "ORDERS"); got.MaxMsgs != 10000 || got.Subjects[0] != "orders.>" {
		t.Errorf("after the repair: %+v", got)
	}

	exampletest.Must(t, c.js.DeleteStream(t.Context(), "ORDERS")) // and its consumers with it
	now := c.reconcileNow(t, "orders", "two")
	if got := c.config(t, "ORDERS"); got.MaxMsgs != 10000 || !exampletest.Ready(now) {
		t.Errorf("after the repair: %+v, and Ready is %v", got, meta.FindStatusCondition(now.Status.Conditions, condition.Ready))
	}
	billing := &v1.Consumer{ObjectMeta: c.In("billing")}
	c.Patch(t, billing, fmt.Sprintf(`{"metadata":{"annotations":{%q:"three"}}}`, policy.ReconcileNowAnnotation))
	billing = c.consumer(t, "billing", "acknowledged", func(obj *v1.Consumer) bool { return obj.Status.LastHandledReconcileAt == "three" })
	if _, err := c.js.Consumer(t.Context(), "ORDERS", billing.Status.Consumer); err != nil {
		t.Errorf("the consumer after the repair: %v", err)
	}

	// With a policy that does not allow an update, the drift is shown and stays.
	orders := &v1.Stream{ObjectMeta: c.In("orders")}
	c.Patch(t, orders, fmt.Sprintf(`{"metadata":{"annotations":{%q:"observe"}}}`, policy.AllowAnnotation))
	edited.Subjects, edited.MaxMsgs, edited.Metadata = []string{"orders.>"}, 7, c.config(t, "ORDERS").Metadata
	_, err = c.js.UpdateStream(t.Context(), edited)
	exampletest.Must(t, err)
	now = c.reconcileNow(t, "orders", "four")
	if drift := meta.FindStatusCondition(now.Status.Conditions, "Drifted"); drift == nil || drift.Status != metav1.ConditionTrue || drift.Message != "spec.maxMessages" {
		t.Errorf("the condition Drifted is %+v", drift)
	}
	c.Patch(t, orders, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, policy.AllowAnnotation))
	c.stream(t, "orders", "repaired", func(s *v1.Stream) bool {
		return meta.IsStatusConditionFalse(s.Status.Conditions, "Drifted")
	})
	if got := c.config(t, "ORDERS").MaxMsgs; got != 10000 {
		t.Errorf("without the policy the stream has room for %d messages", got)
	}
}

// checkImmutable changes a field that NATS can't change, and sets it back.
func checkImmutable(t *testing.T, c *cluster) {
	orders := &v1.Stream{ObjectMeta: c.In("orders")}
	c.Patch(t, orders, `{"spec":{"storage":"Memory"}}`)
	stalled := c.stream(t, "orders", "stalled", func(s *v1.Stream) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, condition.Stalled)
	})
	ctrlkittest.CheckConditions(t, stalled)
	ready := meta.FindStatusCondition(stalled.Status.Conditions, condition.Ready)
	if ready.Reason != ReasonImmutable || !strings.Contains(ready.Message, "NATS can't change spec.storage from File to Memory: set it back to File") {
		t.Errorf("Ready is %+v", ready)
	}
	c.Patch(t, orders, `{"spec":{"storage":"File"}}`)
	c.stream(t, "orders", "ready", exampletest.Ready[*v1.Stream])
}

// checkDeletionOrder deletes a Stream before its Consumer.
func checkDeletionOrder(t *testing.T, c *cluster, orders *v1.Stream, billing *v1.Consumer, secret *corev1.Secret) {
	exampletest.Must(t, c.Delete(t.Context(), orders))
	waiting := c.stream(t, "orders", "waiting", func(s *v1.Stream) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, reference.ConditionInUse)
	})
	if got := meta.FindStatusCondition(waiting.Status.Conditions, reference.ConditionInUse); got.Message != "it is deleted after Consumer "+c.Namespace+"/billing" {
		t.Errorf("InUse is %+v", got)
	}
	if got := meta.FindStatusCondition(waiting.Status.Conditions, condition.Reconciling); got == nil || got.Reason != step.ReasonCleaningUp || got.Message != "cleaning up: waits for Consumer "+c.Namespace+"/billing to be deleted" {
		t.Errorf("Reconciling is %+v", got)
	}
	c.config(t, "ORDERS") // it exists
	exampletest.Must(t, c.Delete(t.Context(), billing))
	c.Gone(t, billing)
	c.Gone(t, orders)
	if _, err := c.js.Stream(t.Context(), "ORDERS"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream in NATS: error %v, want that it is deleted", err)
	}
	c.Gone(t, secret)
}

// checkAdoption creates a Stream with the name of a stream that another client has made: it is
// left alone until a user has the Stream adopt it. It stays when the Stream is deleted, as its
// policy says, and the next Stream adopts it.
func checkAdoption(t *testing.T, c *cluster) {
	_, err := c.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events.>"}, MaxMsgs: 500, Description: "by hand"})
	exampletest.Must(t, err)
	newEvents := func() *v1.Stream {
		return &v1.Stream{ObjectMeta: c.In("events"), Spec: v1.StreamSpec{Name: "EVENTS", Subjects: []string{"events.>", "more"}}}
	}
	events := newEvents()
	exampletest.Must(t, c.Add(t.Context(), events))
	refused := c.stream(t, "events", "refused", func(s *v1.Stream) bool {
		stalled := meta.FindStatusCondition(s.Status.Conditions, condition.Stalled)
		return stalled != nil && stalled.Reason == "BelongsToAnother"
	})
	ctrlkittest.CheckConditions(t, refused)
	if got := c.config(t, "EVENTS"); got.Metadata[ownerKey] != "" || len(got.Subjects) != 1 {
		t.Errorf("the stream of another was changed: %+v", got)
	}

	c.Patch(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: events.Namespace}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:"EVENTS"}}}`, "external.ctrlkit.dev/adopt"))
	c.Patch(t, events, fmt.Sprintf(`{"metadata":{"annotations":{%q:"EVENTS",%q:"retain"}}}`, external.IDAnnotation, policy.ReclaimAnnotation))
	now := c.stream(t, "events", "ready", exampletest.Ready[*v1.Stream])
	if now.Spec.MaxMessages == nil || *now.Spec.MaxMessages != 500 {
		now = c.stream(t, "events", "late initialized", func(s *v1.Stream) bool { return s.Spec.MaxMessages != nil && *s.Spec.MaxMessages == 500 })
	}
	if got := c.config(t, "EVENTS"); got.Metadata[ownerKey] != string(now.UID) || len(got.Subjects) != 2 || got.MaxMsgs != 500 || got.Description != "by hand" {
		t.Errorf("the adopted stream: %+v", got)
	}
	c.consumer(t, "audit", "ready", exampletest.Ready[*v1.Consumer]) // it has waited for this Stream
	audit := &v1.Consumer{ObjectMeta: c.In("audit")}
	exampletest.Must(t, c.Delete(t.Context(), audit))
	c.Gone(t, audit)

	checkTaker(t, c, now)
	exampletest.Must(t, c.Delete(t.Context(), now))
	c.Gone(t, now)
	if owner, ok := c.config(t, "EVENTS").Metadata[ownerKey]; ok { // it was retained, and released
		t.Errorf("the owner of the retained stream is %q", owner)
	}

	events = newEvents()
	events.Annotations = map[string]string{external.IDAnnotation: "EVENTS"}
	exampletest.Must(t, c.Add(t.Context(), events))
	events = c.stream(t, "events", "ready", exampletest.Ready[*v1.Stream])
	if got := c.config(t, "EVENTS").Metadata[ownerKey]; got != string(events.UID) {
		t.Errorf("the owner of the stream that was adopted again is %q, want %q", got, events.UID)
	}
	exampletest.Must(t, c.Delete(t.Context(), events))
	c.Gone(t, events)
	if _, err := c.js.Stream(t.Context(), "EVENTS"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream in NATS: error %v, want that it is deleted", err)
	}
}

// checkTaker creates a Stream that names the stream of another Stream, with every word that a taker
// has. Nothing changes for that one, also when the taker is deleted.
func checkTaker(t *testing.T, c *cluster, owner *v1.Stream) {
	before := c.config(t, "EVENTS")
	_, err := c.js.Publish(t.Context(), "more", []byte("a message"))
	exampletest.Must(t, err)
	taker := &v1.Stream{ObjectMeta: c.In("taker"), Spec: v1.StreamSpec{Name: "EVENTS", Subjects: []string{"theirs"}}}
	taker.Annotations = map[string]string{external.IDAnnotation: "EVENTS", "external.ctrlkit.dev/adopt-from": string(owner.UID)}
	exampletest.Must(t, c.Add(t.Context(), taker))
	refused := c.stream(t, "taker", "refused", func(s *v1.Stream) bool {
		return meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, condition.Stalled, metav1.ConditionTrue)
	})
	if got := meta.FindStatusCondition(refused.Status.Conditions, condition.Stalled); got.Reason != "BelongsToAnother" || strings.Contains(got.Message, "annotation") {
		t.Errorf("the taker is %s: %s", got.Reason, got.Message)
	}
	exampletest.Must(t, c.Delete(t.Context(), taker))
	c.Gone(t, taker)
	if diff := cmp.Diff(before, c.config(t, "EVENTS")); diff != "" {
		t.Error(diff)
	}
	stream, err := c.js.Stream(t.Context(), "EVENTS")
	exampletest.Must(t, err)
	if messages := stream.CachedInfo().State.Msgs; messages != 1 {
		t.Errorf("the stream has %d messages", messages)
	}
}

// checkCredentials creates a Stream without its Secret. A deletion continues when there is one, or
// when a user gives the stream up.
func checkCredentials(t *testing.T, c *cluster) {
	obj := &v1.Stream{ObjectMeta: c.In("private"), Spec: v1.StreamSpec{
		Subjects: []string{"private"}, Server: v1.Server{CredentialsSecret: "private"},
	}}
	exampletest.Must(t, c.Add(t.Context(), obj))
	waiting := c.stream(t, "private", "waiting", func(s *v1.Stream) bool {
		found := meta.FindStatusCondition(s.Status.Conditions, "CredentialsReady")
		return found != nil && found.Reason == "SecretNotFound" && found.Message == "Secret "+c.Namespace+"/private does not exist: create it"
	})
	ctrlkittest.CheckConditions(t, waiting)
	secret := &corev1.Secret{ObjectMeta: c.In("private"), StringData: map[string]string{"token": "any"}}
	exampletest.Must(t, c.Add(t.Context(), secret))
	now := c.stream(t, "private", "ready", exampletest.Ready[*v1.Stream])
	c.config(t, now.Status.Stream)
	if !strings.HasPrefix(now.Status.Stream, "k8s-") {
		t.Errorf("the stream has the name %q", now.Status.Stream)
	}

	exampletest.Must(t, c.Delete(t.Context(), secret)) // it stays as long as the Stream
	exampletest.Must(t, c.Delete(t.Context(), obj))
	c.Gone(t, obj)
	c.Gone(t, secret)
	if _, err := c.js.Stream(t.Context(), now.Status.Stream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream in NATS: error %v, want that it is deleted", err)
	}
}

// A namespace is deleted with all that is in it, in whatever order: the credentials go last.
func TestNamespaceDeletion(t *testing.T) {
	for range *namespaces {
		c := startCluster(t, time.Hour, policies...)
		stream := &v1.Stream{ObjectMeta: c.In("a"), Spec: v1.StreamSpec{Subjects: []string{"a"}, Server: v1.Server{CredentialsSecret: "credentials"}}}
		consumer := &v1.Consumer{ObjectMeta: c.In("b"), Spec: v1.ConsumerSpec{Stream: "a"}}
		for _, obj := range []client.Object{stream, consumer, &corev1.Secret{ObjectMeta: c.In("credentials"), StringData: map[string]string{"token": "any"}}} {
			exampletest.Must(t, c.Add(t.Context(), obj))
		}
		c.consumer(t, "b", "ready", exampletest.Ready[*v1.Consumer])
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
		exampletest.Must(t, c.Delete(t.Context(), namespace))
		c.Gone(t, namespace)
		for name := range c.js.StreamNames(t.Context()).Name() {
			t.Errorf("stream %s is left in NATS", name)
		}
	}
}

var namespaces = flag.Int("namespaces", 1, "delete so many `namespaces`")
