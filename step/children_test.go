// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
)

// hideChild has the cache not have the child yet, as long as it is true.
func hideChild(w *world, hidden bool) {
	w.fault = nil
	if hidden {
		w.fault = failOn("get ConfigMap child", apierrors.NewNotFound(things, "child"))
	}
}

// keepChild has a step create or apply the ConfigMap child if the cache does not have it. It returns
// what reconciles, and checks how often the step was run by then and when the next reconcile is.
func keepChild(w *world, applied bool) (reconcile func(did int, after time.Duration)) {
	ran := 0
	w.engine(doing("Keep", func(ctx context.Context, req *request) (ctrl.Result, error) {
		ran++
		child := configMap("child", nil)
		err := req.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
		switch {
		case apierrors.IsNotFound(err) && applied:
			err = req.Client.Apply(ctx, applycorev1.ConfigMap("child", "default").WithData(map[string]string{"a": "b"}))
		case apierrors.IsNotFound(err):
			err = req.Client.Create(ctx, configMap("child", nil))
		}
		return ctrlkit.RequeueIfError(err)
	}))
	return func(did int, after time.Duration) {
		w.tb.Helper()
		same(w.tb, "requeued after", after, w.must().RequeueAfter)
		same(w.tb, "runs", did, ran)
	}
}

// What a reconcile has created is in the cache before the next one looks: else that would create it
// again.
func TestWaitsForChildrenInCache(t *testing.T) {
	for _, applied := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, newThing())
			reconcile := keepChild(w, applied)
			reconcile(1, 0)
			hideChild(w, true)
			reconcile(1, time.Second) // the step was not run
			hideChild(w, false)
			reconcile(2, 0)
		})
	}
}

// A child that does not come, because another client has deleted it, is not waited for much longer
// than that.
func TestChildThatNeverComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		reconcile := keepChild(w, false)
		reconcile(1, 0)
		w.remove(configMap("child", nil))
		reconcile(1, time.Second)
		pass(time.Second)
		reconcile(1, time.Second)
		pass(2 * time.Second)
		reconcile(2, 0)
		must(t, w.server.Get(t.Context(), client.ObjectKeyFromObject(configMap("child", nil)), configMap("child", nil)))
	})
}
