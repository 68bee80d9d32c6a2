// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
)

// A cluster is an API server with the Pod self, and the detector of that Pod. The
// fake client keeps no field managers: managers_test.go has its own objects.
type cluster struct {
	t        *testing.T
	server   client.Client
	live     int // how often the API server was asked because of a suspicion
	detector Detector
	now      time.Time

	written string // the version of self after our last write
	// Of the next reconcile.
	requested, failed bool
}

var self = journal.Object{Kind: "Pod", Namespace: "default", Name: "self"}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	scheme := runtime.NewScheme()
	must(t, errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme)))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	server := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithGlobalResourceVersionCounter().
		WithStatusSubresource(&corev1.Pod{}).Build()
	c.server = interceptor.NewClient(server, interceptor.Funcs{Patch: patchOrKeep})
	c.create(pod("self"))
	return c
}

// patchOrKeep patches an object as an API server does: it keeps the version of one that the patch
// does not change, which the fake client does not.
func patchOrKeep(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	before, after := &corev1.Pod{}, &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), before); err != nil {
		return err
	}
	old, err := json.Marshal(before)
	if err != nil {
		return err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	patched, err := strategicpatch.StrategicMergePatch(old, data, before)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(patched, after); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before, after) {
		before.DeepCopyInto(obj.(*corev1.Pod)) //nolint:errcheck // these tests patch only Pods
		return nil
	}
	return c.Patch(ctx, obj, patch, opts...)
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uuid.NewUUID()}}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	must(c.t, err)
}

func (c *cluster) get(name string) *corev1.Pod {
	c.t.Helper()
	obj := &corev1.Pod{}
	c.must(c.server.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj))
	return obj
}

// The other client.

func (c *cluster) create(obj *corev1.Pod) { c.t.Helper(); c.must(c.server.Create(c.t.Context(), obj)) }

func (c *cluster) delete(name string) {
	c.t.Helper()
	c.must(c.server.Delete(c.t.Context(), pod(name)))
}

func (c *cluster) label(name, key, value string) {
	c.t.Helper()
	obj := c.get(name)
	metav1.SetMetaDataLabel(&obj.ObjectMeta, key, value)
	c.must(c.server.Update(c.t.Context(), obj))
}

// Get counts the reads of a detector that suspects a fight.
func (c *cluster) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.live++
	return c.server.Get(ctx, key, obj, opts...)
}

// List implements [client.Reader].
func (c *cluster) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.live++
	return c.server.List(ctx, list, opts...)
}

// An action is what the operator does in a reconcile.
type action func(o *operator)

// An operator is the writing side of a reconcile.
type operator struct {
	client.Client
	t    *testing.T
	self *corev1.Pod // to change
}

func (o *operator) must(err error) {
	o.t.Helper()
	must(o.t, err)
}

// label sets a label of self, and writes it only if that is a change.
func (o *operator) label(key, value string) {
	o.t.Helper()
	if o.self.Labels[key] == value {
		return
	}
	metav1.SetMetaDataLabel(&o.self.ObjectMeta, key, value)
	o.must(o.Update(o.t.Context(), o.self))
}

// patch sets a label of a Pod that it does not read.
func (o *operator) patch(name, key, value string, opts ...client.PatchOption) {
	o.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+key+`":"`+value+`"}}}`))
	o.must(o.Patch(o.t.Context(), pod(name), patch, opts...))
}

// read returns a Pod from the cache, nil if there is none.
func (o *operator) read(name string) *corev1.Pod {
	obj := &corev1.Pod{}
	if o.Get(o.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj) != nil {
		return nil
	}
	return obj
}

// reconcile runs an action as the engine does.
func (c *cluster) reconcile(do action) (found *Loop, slow time.Duration) {
	c.t.Helper()
	ctx, read, began := c.t.Context(), c.get("self"), c.written
	record := &track.Record{Owner: "things", Self: read, APIReader: c}
	disputes := c.detector.Disputes(ctx, c.server, self, read)
	record.Watch(&c.detector, c.detector.Reads())
	o := &operator{track.NewClient(client.WithFieldOwner(c.server, "things"), record), c.t, read.DeepCopy()}
	do(o)
	if o.self.ResourceVersion != read.ResourceVersion {
		c.written = o.self.ResourceVersion
	}
	return c.detector.Observe(Reconcile{
		Record: record, Disputes: disputes, Self: self, Owner: "things",
		Generation: read.Generation, Policies: policy.Annotations(read), Version: read.ResourceVersion, Began: began, Written: c.written,
		Requested: c.requested, Failed: c.failed, Now: c.now,
	})
}

// rounds reconciles up to n times, and lets the other client answer each time, until a hot loop is
// found. It returns the loop, and the reconciles that it took.
func (c *cluster) rounds(n int, every time.Duration, do action, answer func()) (found *Loop, rounds int) {
	c.t.Helper()
	for i := range n {
		if found, _ := c.reconcile(do); found != nil {
			return found, i + 1
		}
		answer()
		c.now = c.now.Add(every)
	}
	return nil, n
}

// equal checks that got is want. What says of what, and may be empty in a test that checks one thing.
func equal[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
