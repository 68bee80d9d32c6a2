// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// last returns the last word of the calls.
func last(calls string) string { return calls[strings.LastIndexByte(calls, ' ')+1:] }

// An annotation that is added, changed or removed, on the object or on its namespace, reconciles
// the object at once, also if nothing else is reconciled.
func TestAChangeOfAPolicyReconcilesAtOnce(t *testing.T) {
	rings.Test(t, "takes a second")
	for _, on := range []string{"object", "namespace"} {
		for _, skipUnchanged := range []bool{false, true} {
			onCluster(t, on, func(t *testing.T, c *cluster) {
				var annotated client.Object = prod()
				if on == "object" {
					annotated = user("prod", "a")
				}
				o := c.start(&operator{skipUnchanged: skipUnchanged})
				c.create()
				for _, change := range []struct{ key, value, managed, call string }{
					{"reconcile", "skip", "False Skipped", "UpdateStatus"},
					{"reconcile", "detach-on-delete", "True DetachOnDelete", "CreateOrUpdate"},
					{"reconcile", "skp", "False InvalidPolicy", "UpdateStatus"},
					{"reconcile", "", "True Managed", "CreateOrUpdate"},
					{"reclaim", "retain", "True DetachOnDelete", "CreateOrUpdate"},
					{"reclaim", "delete", "True Managed", "CreateOrUpdate"},
					{"reclaim", "", "True Managed", "CreateOrUpdate"},
					{"allow", "observe", "False Restricted", "UpdateStatus"},
					{"allow", "*", "True Managed", "CreateOrUpdate"},
					{"allow", "", "True Managed", "CreateOrUpdate"},
					{"recncile", "skip", "False InvalidPolicy", "UpdateStatus"},
					{"recncile", "", "True Managed", "CreateOrUpdate"},
				} {
					time.Sleep(time.Hour)
					o.take()
					c.annotate(annotated, "policy.ctrlkit.dev/"+change.key, change.value)
					what := change.key + ": " + change.value
					equal(t, what, describe(c.get(), "Managed"), change.managed)
					equal(t, what, last(o.take()), change.call)
				}
			})
		}
	}
}

// What is to be corrected keeps an object that is deleted until it is. TestTable has what becomes
// of others.
func TestInvalidPolicyInDeletion(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := c.start(&operator{skipUnchanged: true})
		c.create()
		c.annotate(prod(), "policy.ctrlkit.dev/reclaim", "retian")
		o.take()
		c.delete()
		time.Sleep(24 * time.Hour)
		equal(t, "calls", o.take(), "")
		for _, kind := range []string{"Ready", "Managed"} {
			if got := c.condition(kind); !strings.HasPrefix(got, "False InvalidPolicy: ") || !strings.Contains(got, `did you mean "retain"?`) {
				t.Errorf("%s is %s", kind, got)
			}
		}
		c.annotate(prod(), "policy.ctrlkit.dev/reclaim", "delete")
		if equal(t, "calls", o.take(), "Delete"); c.get() != nil {
			t.Error("it is still there")
		}
	})
}

// A stale client reads namespaces without the annotations that they have by now.
type stale struct{ client.Client }

func (s stale) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := s.Client.Get(ctx, key, obj, opts...)
	if _, ok := obj.(*corev1.Namespace); ok {
		obj.SetAnnotations(nil)
	}
	return err
}

// The cache of namespaces may be stale: before a deletion, the API server is asked.
func TestADeletionAsksForTheNamespace(t *testing.T) {
	d := newDesk(t)
	o := newRecorder()
	e, err := step.New(step.Options[*User]{Name: "users", Client: stale{d.client}, APIReader: d.client}, external.Simple("User", o.funcs()))
	d.must(err)
	kept := prod()
	kept.Annotations = map[string]string{"policy.ctrlkit.dev/reclaim": "retain"}
	d.must(d.client.Update(t.Context(), kept))
	obj := user("prod", "a")
	d.must(d.client.Create(t.Context(), obj))
	reconcile := func() string {
		_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		d.must(err)
		return o.take()
	}
	equal(t, "calls", reconcile(), "Claim CreateOrUpdate")
	d.must(d.client.Delete(t.Context(), obj))
	equal(t, "calls when it is deleted", reconcile(), "")
	if err := d.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err == nil {
		t.Error("it is still there")
	}
}

// The status of an object whose policy forbids to change anything is refreshed from time to time.
func TestRefresh(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := &operator{recorder: newRecorder(), options: external.Funcs[*User]{Refresh: time.Minute, Policy: policy.Defaults{Reconcile: policy.ReconcileSkip}}, skipUnchanged: true}
		seen := "one"
		o.update = func(_ context.Context, req *request) error {
			req.Object.Status.Observed = seen
			return nil
		}
		c.start(o)
		c.create()
		if obj := c.get(); obj.Status.Observed != "one" || len(obj.Finalizers) > 0 {
			t.Errorf("observed %q, finalizers %v", obj.Status.Observed, obj.Finalizers)
		}
		c.takeWrites()
		o.take()
		time.Sleep(10 * time.Minute)
		if took, writes := strings.Count(o.take(), "UpdateStatus"), c.takeWrites(); took < 9 || took > 11 || len(writes) > 0 {
			t.Errorf("refreshed %d times with writes %q, want some 10 and none", took, writes)
		}
		o.change(func() { seen = "two" })
		time.Sleep(66 * time.Second)
		equal(t, "observed", c.get().Status.Observed, "two")
	})
}

// A request to reconcile now is acknowledged after what it asks for was done, and not before.
func TestReconcileNow(t *testing.T) {
	const annotation = "policy.ctrlkit.dev/reconcile-now"
	failed := func() error { return errors.New("no connection") }
	for name, how := range map[string]struct {
		outcome func() error
		want    string
	}{
		"passes":    {func() error { return nil }, "42"},
		"polls":     {func() error { return ctrlkit.RequeueWithin(time.Hour) }, "42"},
		"exits":     {func() error { return ctrlkit.ErrExit }, "42"},
		"fails":     {failed, ""},
		"waits":     {func() error { return ctrlkit.Wait("a backup") }, ""},
		"asks":      {func() error { return ctrlkit.Poll("a backup", time.Hour) }, ""},
		"skipped":   {failed, "42"},
		"refreshed": {failed, "42"},
		"unseen":    {failed, ""},
	} {
		onCluster(t, name, func(t *testing.T, c *cluster) {
			o := &operator{recorder: newRecorder(), skipUnchanged: true}
			create := how.outcome
			o.create = func(context.Context, *request) error { return create() }
			switch name {
			case "unseen":
				o.update = func(context.Context, *request) error { return errors.New("no connection") }
			case "refreshed":
				o.options.Refresh = time.Hour
			}
			c.start(o)
			annotations := map[string]string{}
			if name == "skipped" || name == "refreshed" || name == "unseen" {
				annotations["policy.ctrlkit.dev/reconcile"] = "skip"
			}
			c.create(func(obj *User) { obj.Annotations = annotations })
			for _, where := range []struct {
				obj     client.Object
				handled func(s *policy.RequestStatus) string
			}{
				{user("prod", "a"), func(s *policy.RequestStatus) string { return s.LastHandledReconcileAt }},
				{prod(), func(s *policy.RequestStatus) string { return s.LastHandledNamespaceReconcileAt }},
			} {
				o.take()
				c.annotate(where.obj, annotation, "42")
				if o.take() == "" {
					t.Errorf("it is not reconciled by a request of %T", where.obj)
				}
				equal(t, "acknowledged", where.handled(&c.get().Status.RequestStatus), how.want)
			}
			if how.want == "" {
				o.change(func() { create, o.update = func() error { return nil }, nil })
				time.Sleep(time.Hour)
				c.edit(func(obj *User) { obj.Spec.Name = "other" })
				now := c.get().Status
				equal(t, "acknowledged in the end", now.LastHandledReconcileAt+" "+now.LastHandledNamespaceReconcileAt, "42 42")
			}
		})
	}
}
