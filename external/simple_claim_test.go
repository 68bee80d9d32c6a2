// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
)

const operatorAnnotation = "lifecycle.ctrlkit.dev/operator"

// The claim, the mark of the operator and the finalizer are written in one patch before anything is
// made. From creation to Ready that is one write, and one of the status.
func TestTheClaimIsWrittenBeforeAnythingIsMade(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := &operator{recorder: newRecorder(), options: external.Funcs[*User]{Operator: "us"}}
		o.create = func(context.Context, *request) error {
			obj := c.get()
			if obj.Annotations[claimed] != "app" || obj.Annotations[operatorAnnotation] != "us" || !slices.Contains(obj.Finalizers, finalizer) {
				t.Errorf("CreateOrUpdate is reached with annotations %v and finalizers %v", obj.Annotations, obj.Finalizers)
			}
			return nil
		}
		c.start(o)
		c.create()
		writes := c.takeWrites()
		if len(writes) != 2 || !strings.HasPrefix(writes[0], "PATCH a {") || !strings.HasPrefix(writes[1], "PATCH a/status ") {
			t.Fatalf("writes %q, want one of the metadata and one of the status", writes)
		}
		for _, part := range []string{claimed, operatorAnnotation, finalizer} {
			if !strings.Contains(writes[0], part) {
				t.Errorf("the patch %s does not have %s", writes[0], part)
			}
		}
		equal(t, "Ready", c.condition("Ready"), "True Ready")
		equal(t, "Managed", c.condition("Managed"), "True Managed")
		if took := o.take(); !strings.HasPrefix(took, "Claim CreateOrUpdate") {
			t.Errorf("calls %s", took)
		}
		time.Sleep(24 * time.Hour)
		if writes := c.takeWrites(); len(writes) > 0 {
			t.Errorf("the idle object is written: %q", writes)
		}
	})
}

// With the finalizer of an admission policy, and without a claim that writes anything, only the
// status is written.
func TestAnAdmittedObjectCostsOneWrite(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := c.start(&operator{plain: true})
		c.create(admitted)
		if writes := c.takeWrites(); len(writes) != 1 || !strings.HasPrefix(writes[0], "PATCH a/status ") {
			t.Errorf("writes %q, want one of the status", writes)
		}
		equal(t, "Ready", c.condition("Ready"), "True Ready")
		c.delete()
		if writes := c.takeWrites(); len(writes) != 1 || c.get() != nil {
			t.Errorf("writes %q, want one that removes the finalizer", writes)
		}
		o.stop()
	})
}

// What is claimed changes with the object, and is written before it is used.
func TestClaimedAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := &operator{recorder: newRecorder(), skipUnchanged: true}
		o.create = func(_ context.Context, req *request) error {
			if got := c.get().Annotations[claimed]; got != req.Object.Spec.Name {
				t.Errorf("CreateOrUpdate is reached for %q while %q is claimed", req.Object.Spec.Name, got)
			}
			return nil
		}
		c.start(o)
		c.create()
		c.takeWrites()
		c.edit(func(obj *User) { obj.Spec.Name = "other" })
		writes := c.takeWrites()
		if len(writes) != 2 || !strings.Contains(writes[0], `"`+claimed+`":"other"`) || strings.Contains(writes[0], finalizer) {
			t.Errorf("writes %q, want one of the claim, without the finalizer, and one of the observed generation", writes)
		}
		c.delete()
		if writes := c.takeWrites(); len(writes) != 1 || c.get() != nil {
			t.Errorf("the deletion costs %q, want one write", writes)
		}
		if took := o.take(); !strings.HasSuffix(took, " Delete") || strings.Count(took, "Delete") != 1 {
			t.Errorf("calls %s", took)
		}
	})
}

// An object that was never claimed is deleted without a call, also while its Claim fails, and
// although an admission policy has given it the finalizer.
func TestNeverClaimed(t *testing.T) {
	for name, change := range map[string]func(*User){"admitted": admitted, "without a finalizer": func(*User) {}} {
		onCluster(t, name, func(t *testing.T, c *cluster) {
			o := &operator{recorder: newRecorder()}
			o.claim = func(context.Context, *request) error {
				return ctrlkit.Wait("a licence")
			}
			c.start(o)
			c.create(change)
			equal(t, "Ready", c.condition("Ready"), "False Waiting: waits for a licence")
			equal(t, "Managed", c.condition("Managed"), "True Managed")
			if obj := c.get(); (len(obj.Finalizers) > 0) != (name == "admitted") || obj.Annotations[claimed] != "" {
				t.Errorf("a wait leaves finalizers %v and annotations %v", obj.Finalizers, obj.Annotations)
			}
			c.delete()
			if took := o.take(); c.get() != nil || strings.Contains(took, "CreateOrUpdate") || strings.Contains(took, "Delete") {
				t.Errorf("calls %s", took)
			}
		})
	}
}

// A Claim waits for an object that is named, and a watch ends the wait.
func TestAClaimWaitsForAnObject(t *testing.T) {
	for _, skipUnchanged := range []bool{false, true} {
		inCluster(t, func(c *cluster) {
			o := &operator{recorder: newRecorder(), skipUnchanged: skipUnchanged}
			o.claim = func(ctx context.Context, req *request) error {
				_, err := step.GetOrWait[*corev1.ConfigMap](ctx, req, client.ObjectKey{Name: req.Object.Spec.Server})
				return err
			}
			o.options.Watches = []step.Watch{{Object: &corev1.ConfigMap{}, NamedBy: func(obj client.Object) []client.ObjectKey {
				return []client.ObjectKey{{Name: obj.(*User).Spec.Server}}
			}}}
			c.start(o)
			c.create(func(obj *User) { obj.Spec.Server = "mysql" })
			equal(t, "Ready", c.condition("Ready"), "False Waiting: waits for ConfigMap prod/mysql")
			time.Sleep(time.Hour)
			o.take()
			c.must(c.user.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "mysql"}}))
			pass()
			equal(t, "Ready", c.condition("Ready"), "True Ready")
			if took := o.take(); !strings.HasPrefix(took, "Claim CreateOrUpdate") {
				t.Errorf("calls %s", took)
			}
		})
	}
}

// behind is a client whose reads are those of a cache that has not seen the deletion of an object.
type behind struct {
	client.Client
	obj *User
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if u, ok := obj.(*User); ok && key == client.ObjectKeyFromObject(b.obj) {
		*u = *b.obj.DeepCopyObject().(*User) //nolint:errcheck // it is one
		return nil
	}
	return b.Client.Get(ctx, key, obj, options...)
}

// After a restart a cache may be so old that an object is there which is gone, with its finalizer
// and its claim, so that no write shows it. Nothing is made for it, because nothing would delete it.
func TestNothingIsMadeForWhatIsGone(t *testing.T) {
	d, r := newDesk(t), newRecorder()
	r.calls = d.calls
	for name, funcs := range map[string]external.Funcs[*User]{"full": r.funcs(), "plain": r.required()} {
		funcs.Operator = "us"
		for _, gone := range []bool{false, true} {
			obj := user("prod", fmt.Sprintf("%s-%t", name, gone))
			obj.Finalizers = []string{finalizer}
			obj.Annotations = map[string]string{operatorAnnotation: "us", claimed: "app"}
			d.must(d.client.Create(t.Context(), obj))
			cached := obj.DeepCopyObject().(*User) //nolint:errcheck // it is one
			if gone {
				obj.Finalizers = nil
				d.must(d.client.Update(t.Context(), obj))
				d.must(d.client.Delete(t.Context(), obj))
			}
			engine, err := step.New(step.Options[*User]{Name: "users", Client: behind{d.client, cached}, APIReader: d.client},
				external.Simple("User", funcs))
			d.must(err)
			_, _ = engine.Reconcile(log.IntoContext(t.Context(), logr.Discard()), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
			if made := strings.Contains(d.calls.take(), "CreateOrUpdate"); made == gone {
				t.Errorf("%s: gone %t, made %t", name, gone, made)
			}
		}
	}
}
