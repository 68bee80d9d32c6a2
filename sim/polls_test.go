// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/rings"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// A poll with a write that changes nothing is reported as that, and is no endless work that ends
// the exploration. One that only reads is not reported.
func TestPollWithoutChange(t *testing.T) {
	rings.Test(t, "simulates")
	for _, writes := range []bool{true, false} {
		w := deploymentWorkload(func(ctx context.Context, o *operation) error {
			o.requeueAfter = 5 * time.Minute
			if !writes || o.obj.DeletionTimestamp != nil {
				return nil
			}
			return o.Patch(ctx, o.obj, client.MergeFrom(o.obj.DeepCopy()))
		})
		w.Quiet = 15 * time.Minute
		violations, trace := violationsOf(t, w, "")
		if want := len(violations) == 1 && violations[0].Oracle == oracle.NoNoopWrites; want != writes || !writes && len(violations) > 0 {
			t.Errorf("writes %t: got %v\n%s", writes, violations, trace)
		}
	}
}
