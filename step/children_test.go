// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// What a reconcile has created is in the cache before the next one looks: else that would create it
// again.
func TestWaitsForChildrenInCache(t *testing.T) {
	for _, applied := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newStaleChildren(t)
			w.applied = applied
			w.reconcile(t, 1, 0)
			w.hidden = true
			w.reconcile(t, 1, time.Second) // the step was not run
			w.hidden = false
			w.reconcile(t, 2, 0)
		})
	}
}

// A child that does not come, because another client has deleted it, is not waited for much longer
// than that.
func TestChildThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStaleChildren(t)
		w.reconcile(t, 1, 0)
		must(t, w.Client.Delete(t.Context(), w.child()))
		w.reconcile(t, 1, time.Second)
		time.Sleep(time.Second)
		w.reconcile(t, 1, time.Second)
		time.Sleep(2 * time.Second)
		w.reconcile(t, 2, 0)
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(w.child()), w.child()); err != nil {
			t.Errorf("the child was not created again: %v", err)
		}
	})
}

// staleChildren is a client whose cache does not have the child of a Secret yet, while it is
// hidden, and an engine that keeps this child.
type staleChildren struct {
	client.Client
	hidden  bool
	applied bool // instead of created
	engine  *step.Engine[*corev1.Secret]
	did     int
}

func newStaleChildren(t *testing.T) *staleChildren {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", UID: "1"}}
	w := &staleChildren{Client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(secret).Build()}
	engine, err := step.New(step.Options[*corev1.Secret]{Name: "keeper", Client: w},
		step.Func("Keep", func(ctx context.Context, req *step.Request[*corev1.Secret]) (ctrl.Result, error) {
			w.did++
			child := w.child()
			err := req.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
			switch {
			case apierrors.IsNotFound(err) && w.applied:
				err = req.Client.Apply(ctx, applycorev1.ConfigMap("child", "default").WithData(map[string]string{"a": "b"}))
			case apierrors.IsNotFound(err):
				err = req.Client.Create(ctx, w.child())
			}
			return ctrlkit.RequeueIfError(err)
		}))
	must(t, err)
	w.engine = engine
	return w
}

func (w *staleChildren) child() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}}
}

func (w *staleChildren) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.ConfigMap); ok && w.hidden {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	return w.Client.Get(ctx, key, obj, opts...)
}

// reconcile reconciles, and wants that the step was run so often by then, and that the next
// reconcile is asked for.
func (w *staleChildren) reconcile(t *testing.T, did int, after time.Duration) {
	t.Helper()
	result, err := w.engine.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "one"}})
	must(t, err)
	if w.did != did || result.RequeueAfter != after {
		t.Fatalf("the step was run %d times, the next reconcile is in %s; want %d and %s", w.did, result.RequeueAfter, did, after)
	}
}
