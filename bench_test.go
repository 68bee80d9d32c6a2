// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

//go:noinline
func work(context.Context) (ctrl.Result, error) { return ctrl.Result{}, nil }

type directAction struct{}

func (directAction) Description() string                          { return "" }
func (directAction) Run(ctx context.Context) (ctrl.Result, error) { return work(ctx) }

// BenchmarkWorkflow compares a workflow of n actions with n direct calls of the same function
// through an interface.
func BenchmarkWorkflow(b *testing.B) {
	ctrlkit.WithoutOnces(b)
	for _, n := range []int{1, 10, 100} {
		actions, direct := make([]ctrlkit.Action, n), make([]ctrlkit.Action, n)
		for i := range actions {
			actions[i], direct[i] = ctrlkit.NewAction(fmt.Sprint(i), work), directAction{}
		}
		b.Run(fmt.Sprintf("direct/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			ctx := context.Background()
			for b.Loop() {
				for _, a := range direct {
					_, _ = a.Run(ctx)
				}
			}
		})
		for name, w := range map[string]ctrlkit.Action{"Sequential": ctrlkit.Sequential(actions...), "Join": ctrlkit.Join(actions...)} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				ctx := context.Background()
				for b.Loop() {
					_, _ = w.Run(ctx)
				}
			})
		}
	}
}

func TestNoAllocationsWithoutAnObserver(t *testing.T) {
	ctrlkit.WithoutOnces(t)
	actions := make([]ctrlkit.Action, 100)
	for i := range actions {
		actions[i] = ctrlkit.NewAction(fmt.Sprint(i), work)
	}
	for _, w := range []ctrlkit.Action{
		ctrlkit.Sequential(actions...), ctrlkit.Join(actions...), ctrlkit.JoinOrdered(actions...),
		ctrlkit.Sequential(ctrlkit.Join(actions...), ctrlkit.If(true, ctrlkit.Sequential(actions...))),
	} {
		ctx := context.Background()
		if allocs := testing.AllocsPerRun(100, func() { _, _ = w.Run(ctx) }); allocs != 0 {
			t.Errorf("%.40s...: %v allocations per run", w.Description(), allocs)
		}
	}
}

// failing returns n actions that fail, each with an error of its own.
func failing(n int) []ctrlkit.Action {
	actions := make([]ctrlkit.Action, n)
	for i := range actions {
		err := fmt.Errorf("object %d is in the way", i)
		actions[i] = ctrlkit.NewAction(fmt.Sprintf("SyncObject%d", i), func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, err })
	}
	return actions
}

// manyFailures are workflows in which n actions fail.
var manyFailures = map[string]func(n int) ctrlkit.Action{
	"Join":         func(n int) ctrlkit.Action { return ctrlkit.Join(failing(n)...) },
	"ParallelJoin": func(n int) ctrlkit.Action { return ctrlkit.ParallelJoin(failing(n)...) },
	"Once": func(n int) ctrlkit.Action {
		actions := failing(n)
		for i := range actions {
			actions[i] = ctrlkit.Once(actions[i])
		}
		return ctrlkit.Join(ctrlkit.JoinOrdered(actions...), ctrlkit.JoinOrdered(actions...))
	},
	"Graph": func(n int) ctrlkit.Action {
		return ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			var roots []ctrlkit.GraphNode
			for _, a := range failing(20) {
				roots = append(roots, g.Add(a))
			}
			for i := range n {
				g.Add(ctrlkit.NewAction(fmt.Sprintf("SyncDependent%d", i), work), roots...)
			}
		})
	},
}

// BenchmarkManyFailures runs a workflow in which n actions fail, and makes of it what a reconcile
// needs: the result, the text, the waits and the blocked actions. The time and the memory per
// failure are the same for every n.
func BenchmarkManyFailures(b *testing.B) {
	for name, workflow := range manyFailures {
		for _, n := range []int{100, 2_500, 10_000, 40_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				w := workflow(n)
				b.ReportAllocs()
				for b.Loop() {
					reportFailures(b, w)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/failure")
			})
		}
	}
}

func reportFailures(tb testing.TB, w ctrlkit.Action) {
	result, err := w.Run(context.Background())
	ctrlkit.Waits(err)
	ctrlkit.BlockedActions(err)
	text := err.Error()
	_, rest := ctrlkit.IgnoreExit(result, err)
	if rest == nil || len(text) > 10_000 || len(rest.Error()) > 10_000 {
		tb.Fatalf("%d bytes: %.80s", len(text), text)
	}
}

func TestMemoryOfFailuresIsLinear(t *testing.T) {
	for name, workflow := range manyFailures {
		t.Run(name, func(t *testing.T) {
			perFailure := func(n int) float64 {
				w := workflow(n)
				allocated := func() (bytes uint64) {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					reportFailures(t, w)
					runtime.ReadMemStats(&after)
					return after.TotalAlloc - before.TotalAlloc
				}
				return float64(min(allocated(), allocated(), allocated())) / float64(n)
			}
			few, many := perFailure(1_000), perFailure(4_000)
			t.Logf("%.0f bytes for each of 1000 failures, %.0f for each of 4000", few, many)
			if many > 2*few+100 {
				t.Errorf("%.0f bytes for each of 1000 failures, but %.0f for each of 4000", few, many)
			}
		})
	}
}
