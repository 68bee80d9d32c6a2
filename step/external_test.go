// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// A request that was made by hand does not need an engine.
func TestRequestMadeByHand(t *testing.T) {
	req := &request{Object: newThing()}
	must(t, req.EnsureFresh(t.Context()))
	req.Snapshot()
	req.Object.Status.Size = 3
	same(t, "size in the snapshot", 0, req.Snapshot().Status.Size)
	must(t, req.Failure())
	ran := false
	err := step.Workflow(func(*request) ctrlkit.Action {
		return ctrlkit.NewAction("run", func(context.Context) (ctrl.Result, error) { ran = true; return ctrlkit.NoRequeue() })
	})(t.Context(), req)
	if err != nil || !ran {
		t.Errorf("the workflow ran: %t, with error %v", ran, err)
	}
	key := step.NewKey[int]("n")
	step.Put(req, key, 1)
	if n, ok := step.Lookup(req, key); n != 1 || !ok {
		t.Errorf("got %d, %t", n, ok)
	}
}
