// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/condition/conditiontest"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// A cluster is a real control plane with the operator, a NATS server, and clients of both as users
// have them.
type cluster struct {
	client.WithWatch
	js      jetstream.JetStream
	address string
	counts  *counts
}

// startCluster starts everything. Without policies the finalizers are not put on objects at their
// admission. The operator has the permissions of its role and no others.
func startCluster(t *testing.T, poll time.Duration, policies bool) *cluster {
	t.Helper()
	plane := controlplanetest.Start(t, controlplane.Options{Parts: controlplane.AllParts, CRDs: []string{"config/crd/bases"}})
	user, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, user, "config/rbac/operator.yaml", "config/rbac/role.yaml")
	if policies {
		applyAll(t, user, "config/admission/streams.yaml", "config/admission/consumers.yaml")
	}
	address := newServer(t)
	c := &cluster{user, newJetStream(t, address), address, &counts{}}
	c.counts.changed.L = &c.counts.mu
	config := rest.CopyConfig(plane.Config())
	config.Impersonate.UserName = "system:serviceaccount:stream-system:stream-operator"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, c.counts} })
	options := ctrl.Options{Logger: testr.NewWithOptions(t, testr.Options{LogTimestamp: true})}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = ptr.To(true) // another test may run it, too
	mgr, err := newManager(config, options, settings{address: address, poll: poll, dial: c.counts.dial})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
	})
	return c
}

// counts are the writes at the API server and the calls of NATS, in their order.
type counts struct {
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
		_, path, _ := strings.Cut(r.URL.Path, "/namespaces/default/")
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

// await returns an object as soon as it is as wanted.
func await[T client.Object](t *testing.T, c *cluster, list client.ObjectList, name, what string, done func(T) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := c.Watch(ctx, list, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var last T
	for event := range w.ResultChan() {
		obj, ok := event.Object.(T)
		if last = obj; ok && event.Type != watch.Deleted && done(obj) {
			return obj
		}
	}
	t.Fatalf("%s is not %s: %+v", name, what, last)
	return last
}

func (c *cluster) stream(t *testing.T, name, what string, done func(*v1.Stream) bool) *v1.Stream {
	t.Helper()
	return await(t, c, &v1.StreamList{}, name, what, done)
}

func (c *cluster) consumer(t *testing.T, name, what string, done func(*v1.Consumer) bool) *v1.Consumer {
	t.Helper()
	return await(t, c, &v1.ConsumerList{}, name, what, done)
}

func (c *cluster) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create creates an object as soon as the API server knows its kind.
func (c *cluster) create(t *testing.T, obj client.Object) {
	t.Helper()
	unknown := func(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsServiceUnavailable(err) }
	c.must(t, retry.OnError(wait.Backoff{Duration: 100 * time.Millisecond, Steps: 100}, unknown, func() error { return c.Create(t.Context(), obj) }))
}

// gone waits until an object does not exist any more.
func (c *cluster) gone(t *testing.T, obj client.Object) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object)); apierrors.IsNotFound(err) { //nolint:errcheck // a copy has the type
			return
		}
	}
	t.Fatalf("%s still exists", obj.GetName())
}

func (c *cluster) patch(t *testing.T, obj client.Object, change string) {
	t.Helper()
	c.must(t, c.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner("by-hand")))
}

// reconcileNow requests a reconcile of a Stream, and waits until it is acknowledged.
func (c *cluster) reconcileNow(t *testing.T, name, token string) *v1.Stream {
	t.Helper()
	obj := &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.patch(t, obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, policy.ReconcileNowAnnotation, token))
	return c.stream(t, name, "acknowledged", func(s *v1.Stream) bool { return s.Status.LastHandledReconcileAt == token })
}

// config returns the configuration of a stream in NATS.
func (c *cluster) config(t *testing.T, name string) jetstream.StreamConfig {
	t.Helper()
	stream, err := c.js.Stream(t.Context(), name)
	c.must(t, err)
	return stream.CachedInfo().Config
}

func isReady(conditions []metav1.Condition, generation int64) bool {
	ready := meta.FindStatusCondition(conditions, condition.Ready)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == generation
}

func streamReady(s *v1.Stream) bool { return isReady(s.Status.Conditions, s.Generation) }

func consumerReady(c *v1.Consumer) bool { return isReady(c.Status.Conditions, c.Generation) }

// The operator does its work against a real control plane and a real NATS server.
func TestOperator(t *testing.T) {
	c := startCluster(t, time.Hour, true) // nothing is found by a poll
	applyAll(t, c, "config/samples/stream.yaml")
	orders := c.stream(t, "orders", "ready", streamReady)
	billing := c.consumer(t, "billing", "ready", consumerReady)
	audit := c.consumer(t, "audit", "waiting", func(obj *v1.Consumer) bool {
		waits := meta.FindStatusCondition(obj.Status.Conditions, v1.ConditionStreamReady)
		return waits != nil && waits.Reason == "StreamNotFound"
	})
	conditiontest.Check(t, orders)
	conditiontest.Check(t, billing)
	conditiontest.Check(t, audit)
	if got := c.config(t, "ORDERS"); got.MaxMsgs != 10000 || got.MaxAge != 24*time.Hour || got.Metadata[ownerKey] != string(orders.UID) {
		t.Errorf("the stream in NATS: %+v", got)
	}
	consumer, err := c.js.Consumer(t.Context(), "ORDERS", billing.Status.Consumer)
	c.must(t, err)
	if got := consumer.CachedInfo().Config; got.FilterSubject+strings.Join(got.FilterSubjects, "") != "orders.paid" || got.MaxDeliver != 5 {
		t.Errorf("the consumer in NATS: %+v", got)
	}
	var secret corev1.Secret
	c.must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "orders-connection"}, &secret))
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
	c.must(t, err)
	c.reconcileNow(t, "orders", "one")
	if got := c.config(t, "ORDERS"); got.MaxMsgs != 10000 || got.Subjects[0] != "orders.>" {
		t.Errorf("after the repair: %+v", got)
	}

	c.must(t, c.js.DeleteStream(t.Context(), "ORDERS")) // and its consumers with it
	now := c.reconcileNow(t, "orders", "two")
	if got := c.config(t, "ORDERS"); got.MaxMsgs != 10000 || !streamReady(now) {
		t.Errorf("after the repair: %+v, and Ready is %v", got, meta.FindStatusCondition(now.Status.Conditions, condition.Ready))
	}
	billing := &v1.Consumer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "billing"}}
	c.patch(t, billing, fmt.Sprintf(`{"metadata":{"annotations":{%q:"three"}}}`, policy.ReconcileNowAnnotation))
	billing = c.consumer(t, "billing", "acknowledged", func(obj *v1.Consumer) bool { return obj.Status.LastHandledReconcileAt == "three" })
	if _, err := c.js.Consumer(t.Context(), "ORDERS", billing.Status.Consumer); err != nil {
		t.Errorf("the consumer after the repair: %v", err)
	}

	// With a policy that does not allow an update, the drift is shown and stays.
	orders := &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}}
	c.patch(t, orders, fmt.Sprintf(`{"metadata":{"annotations":{%q:"observe"}}}`, policy.AllowAnnotation))
	edited.Subjects, edited.MaxMsgs, edited.Metadata = []string{"orders.>"}, 7, c.config(t, "ORDERS").Metadata
	_, err = c.js.UpdateStream(t.Context(), edited)
	c.must(t, err)
	now = c.reconcileNow(t, "orders", "four")
	if drift := meta.FindStatusCondition(now.Status.Conditions, external.ConditionDrifted); drift == nil || drift.Status != metav1.ConditionTrue || drift.Message != "spec.maxMessages" {
		t.Errorf("the condition Drifted is %+v", drift)
	}
	c.patch(t, orders, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, policy.AllowAnnotation))
	c.stream(t, "orders", "repaired", func(s *v1.Stream) bool {
		return meta.IsStatusConditionFalse(s.Status.Conditions, external.ConditionDrifted)
	})
	if got := c.config(t, "ORDERS").MaxMsgs; got != 10000 {
		t.Errorf("without the policy the stream has room for %d messages", got)
	}
}

// checkImmutable changes a field that NATS can't change, and sets it back.
func checkImmutable(t *testing.T, c *cluster) {
	orders := &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}}
	c.patch(t, orders, `{"spec":{"storage":"Memory"}}`)
	stalled := c.stream(t, "orders", "stalled", func(s *v1.Stream) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, condition.Stalled)
	})
	conditiontest.Check(t, stalled)
	ready := meta.FindStatusCondition(stalled.Status.Conditions, condition.Ready)
	if ready.Reason != ReasonImmutable || !strings.Contains(ready.Message, "NATS can't change spec.storage from File to Memory: set it back to File") {
		t.Errorf("Ready is %+v", ready)
	}
	c.patch(t, orders, `{"spec":{"storage":"File"}}`)
	c.stream(t, "orders", "ready", streamReady)
}

// checkDeletionOrder deletes a Stream before its Consumer.
func checkDeletionOrder(t *testing.T, c *cluster, orders *v1.Stream, billing *v1.Consumer, secret *corev1.Secret) {
	c.must(t, c.Delete(t.Context(), orders))
	waiting := c.stream(t, "orders", "waiting", func(s *v1.Stream) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, reference.ConditionInUse)
	})
	if got := meta.FindStatusCondition(waiting.Status.Conditions, reference.ConditionInUse); got.Message != "it is deleted after Consumer default/billing" {
		t.Errorf("InUse is %+v", got)
	}
	if got := meta.FindStatusCondition(waiting.Status.Conditions, condition.Reconciling); got == nil || got.Reason != step.ReasonCleaningUp || got.Message != "cleaning up: waits for Consumer default/billing to be deleted" {
		t.Errorf("Reconciling is %+v", got)
	}
	c.config(t, "ORDERS") // it exists
	c.must(t, c.Delete(t.Context(), billing))
	c.gone(t, billing)
	c.gone(t, orders)
	if _, err := c.js.Stream(t.Context(), "ORDERS"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream in NATS: error %v, want that it is deleted", err)
	}
	c.gone(t, secret)
}

// checkAdoption creates a Stream with the name of a stream that another client has made: it is
// left alone until a user has the Stream adopt it. It stays when the Stream is deleted, as its
// policy says, and the next Stream adopts it.
func checkAdoption(t *testing.T, c *cluster) {
	_, err := c.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events.>"}, MaxMsgs: 500, Description: "by hand"})
	c.must(t, err)
	newEvents := func() *v1.Stream {
		return &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "events"}, Spec: v1.StreamSpec{Name: "EVENTS", Subjects: []string{"events.>", "more"}}}
	}
	events := newEvents()
	c.create(t, events)
	refused := c.stream(t, "events", "refused", func(s *v1.Stream) bool {
		stalled := meta.FindStatusCondition(s.Status.Conditions, condition.Stalled)
		return stalled != nil && stalled.Reason == external.ReasonForeign
	})
	conditiontest.Check(t, refused)
	if got := c.config(t, "EVENTS"); got.Metadata[ownerKey] != "" || len(got.Subjects) != 1 {
		t.Errorf("the stream of another was changed: %+v", got)
	}

	c.patch(t, events, fmt.Sprintf(`{"metadata":{"annotations":{%q:"EVENTS",%q:"retain"}}}`, external.IDAnnotation, policy.ReclaimAnnotation))
	now := c.stream(t, "events", "ready", streamReady)
	if now.Spec.MaxMessages == nil || *now.Spec.MaxMessages != 500 {
		now = c.stream(t, "events", "late initialized", func(s *v1.Stream) bool { return s.Spec.MaxMessages != nil && *s.Spec.MaxMessages == 500 })
	}
	if got := c.config(t, "EVENTS"); got.Metadata[ownerKey] != string(now.UID) || len(got.Subjects) != 2 || got.MaxMsgs != 500 || got.Description != "by hand" {
		t.Errorf("the adopted stream: %+v", got)
	}
	c.consumer(t, "audit", "ready", consumerReady) // it has waited for this Stream
	audit := &v1.Consumer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "audit"}}
	c.must(t, c.Delete(t.Context(), audit))
	c.gone(t, audit)

	c.must(t, c.Delete(t.Context(), now))
	c.gone(t, now)
	c.config(t, "EVENTS") // it was retained

	events = newEvents()
	events.Annotations = map[string]string{external.IDAnnotation: "EVENTS"}
	c.create(t, events)
	events = c.stream(t, "events", "ready", streamReady)
	if got := c.config(t, "EVENTS").Metadata[ownerKey]; got != string(events.UID) {
		t.Errorf("the owner of the stream that was adopted again is %q, want %q", got, events.UID)
	}
	c.must(t, c.Delete(t.Context(), events))
	c.gone(t, events)
	if _, err := c.js.Stream(t.Context(), "EVENTS"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream in NATS: error %v, want that it is deleted", err)
	}
}

// checkCredentials creates a Stream without its Secret. A deletion continues when there is one, or
// when a user gives the stream up.
func checkCredentials(t *testing.T, c *cluster) {
	obj := &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "private"}, Spec: v1.StreamSpec{
		Subjects: []string{"private"}, Server: v1.Server{CredentialsSecret: "private"},
	}}
	c.create(t, obj)
	waiting := c.stream(t, "private", "waiting", func(s *v1.Stream) bool {
		ready := meta.FindStatusCondition(s.Status.Conditions, condition.Ready)
		return ready != nil && ready.Reason == "CredentialsMissing" && strings.Contains(ready.Message, "there is no Secret default/private: create it with the keys username and password")
	})
	conditiontest.Check(t, waiting)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "private"}, StringData: map[string]string{"token": "any"}}
	c.create(t, secret)
	now := c.stream(t, "private", "ready", streamReady)
	c.config(t, now.Status.Stream)
	if !strings.HasPrefix(now.Status.Stream, "k8s-") {
		t.Errorf("the stream has the name %q", now.Status.Stream)
	}

	c.must(t, c.Delete(t.Context(), secret))
	c.must(t, c.Delete(t.Context(), obj))
	c.stream(t, "private", "failing", func(s *v1.Stream) bool {
		ready := meta.FindStatusCondition(s.Status.Conditions, condition.Ready)
		return ready != nil && ready.Reason == "CredentialsMissing"
	})
	c.patch(t, obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:"retain"}}}`, policy.ReclaimAnnotation))
	c.gone(t, obj)
	c.config(t, now.Status.Stream) // it was left
}
