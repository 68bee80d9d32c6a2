// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"fmt"
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
