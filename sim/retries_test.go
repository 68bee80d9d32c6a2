// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// retriesEach returns a workload whose operator looks at ten Secrets, creates what the server
// refuses, and tries again after some time.
func retriesEach(pause time.Duration) Workload {
	w := deploymentWorkload(func(ctx context.Context, o *operation) error {
		if o.obj.DeletionTimestamp != nil {
			return nil
		}
		o.requeueAfter = pause
		for range 10 {
			if err := o.live.Get(ctx, client.ObjectKey{Namespace: "default", Name: "credentials"}, &corev1.Secret{}); err != nil {
				return err
			}
		}
		err := o.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "No_Name", Namespace: "default"}})
		if apierrors.IsInvalid(err) {
			return nil // a user has to mend it
		}
		return err
	})
	w.Quiet = 15 * time.Minute
	return w
}

// An operator that tries again each minute what the server refuses does not work without an end. That
// the write is refused is what a run without faults says of it.
func TestSlowRetries(t *testing.T) {
	rings.Test(t, "simulates")
	for pause, want := range map[time.Duration]oracle.Name{
		time.Minute: oracle.EndsWell, 10 * time.Second: oracle.EndsWell, time.Second / 10: oracle.BoundedRequests,
	} {
		violations, trace := violationsOf(t, retriesEach(pause), "")
		if len(violations) != 1 || violations[0].Oracle != want {
			if len(trace) > 4000 {
				trace = trace[len(trace)-4000:]
			}
			t.Errorf("each %s: got %v, want %s alone\n%s", pause, violations, want, trace)
		}
	}
}
