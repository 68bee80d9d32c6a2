// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// shelf is a fake that lists what was put on it.
type shelf struct {
	starts int
	owners map[string]types.UID
}

func (s *shelf) Resources() []OwnedResource {
	var list []OwnedResource
	for id, owner := range s.owners {
		list = append(list, OwnedResource{Resource{ID: id}, owner})
	}
	return list
}

var shelves = NewFake("shelf", func() *shelf { return &shelf{owners: map[string]types.UID{}} })

// A fake is kept when the operator crashes, is new in each run, and its orphans are found.
func TestFakeOfARun(t *testing.T) {
	w := Workload{Operator: func(ctx context.Context, p *Process) error {
		if err := p.Call(ctx, Call{System: "shelf", Verb: "start"}, func() error { shelves.Of(p).starts++; return nil }); err != nil {
			return err
		}
		return idleOperator(ctx, p)
	}}
	for range 2 {
		w.Script = func(w *World) {
			x := configMap("x")
			w.Create(x)
			x, _ = Get(w, x)
			shelves.Of(w).owners["thing"] = x.UID
			w.Settle()
			if n := shelves.Of(w).starts; n != 1 {
				t.Errorf("%d starts in this run", n)
			}
			w.Delete(x)
			w.must("restart", func() error { w.run.processes.restartAll(); return nil })
			w.Sleep(time.Minute)
			if n := shelves.Of(w).starts; n != 2 {
				t.Errorf("%d starts after the restart", n)
			}
		}
		result := play(t, w, "")
		orphan := violation(oracle.NoLeak, "configmaps default/x is gone, its external resource thing of shelf is not")
		if !slices.ContainsFunc(result.violations, func(v oracle.Violation) bool { return v.Oracle == orphan.Oracle && v.Text == orphan.Text }) {
			t.Errorf("the orphan is not found: %v", result.violations)
		}
		if _, ok := result.checkpoints[0]["external shelf thing"]; !ok {
			t.Errorf("the fake is not compared: %v", result.checkpoints[0])
		}
	}
}
