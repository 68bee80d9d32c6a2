// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// hashing returns an operator that names its child by a hash of the UID of the owner. The wrong one
// names it by when it was started, too, so that one more is created after a restart.
func hashing(wrong bool) Workload {
	started := map[*operation]time.Time{} // of each process, which has one
	return deploymentWorkload(func(ctx context.Context, o *operation) error {
		if o.obj.DeletionTimestamp != nil {
			return nil
		}
		cause := string(o.obj.UID)
		if _, known := started[o]; !known {
			started[o] = time.Now()
		}
		if wrong {
			cause += started[o].String()
		}
		child := o.child()
		child.Name = fmt.Sprintf("cache-%.4x", sha256.Sum256([]byte(cause)))
		return o.ensure(ctx, child)
	})
}

// A name that has a hash of a UID is another one after a re-creation, which is no mistake.
func TestNamesOfUIDs(t *testing.T) {
	rings.Test(t, "simulates for a while")
	for _, plan := range []string{
		"seed 1", "crash after write 1", "recreate deployments.apps default/x after write 1", "delete and later create deployments.apps default/x after write 1",
		"resync and restart at checkpoint 1",
	} {
		if violations, trace := violationsOf(t, hashing(false), plan); len(violations) > 0 {
			t.Errorf("%s: %v\n%s", plan, violations, trace)
		}
	}
	w := hashing(false)
	ref, _, err := findReference(t, &w, nil, newSettings(nil))
	if err != nil {
		t.Fatal(err)
	}
	for of, s := range map[string]snapshot.Snapshot{"the reference": ref.Checkpoints[0], "its run": ref.first.checkpoints[0]} {
		if minted := s["configmaps default/cache-*"] != nil; minted != (of == "the reference") {
			t.Errorf("%s has %q: transitions compare runs of one seed by the names that they have", of, slices.Sorted(maps.Keys(s)))
		}
	}
	violations, trace := violationsOf(t, hashing(true), "crash after write 1")
	for _, v := range violations {
		if v.Oracle == oracle.SameEnd && strings.Contains(v.Text, "+ configmaps default/cache-* #2 should not be there") {
			return
		}
	}
	t.Errorf("the wrong operator: %v\n%s", violations, trace)
}
