// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

//go:noinline
func work(context.Context) (ctrl.Result, error) { return ctrl.Result{}, nil }

type call struct{}

func (call) Description() string                          { return "" }
func (call) Run(ctx context.Context) (ctrl.Result, error) { return work(ctx) }

// BenchmarkInSequence runs n actions one after the other: by hand, joining the errors with
// errors.Join, and as workflows.
func BenchmarkInSequence(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		calls, actions := make([]ctrlkit.Action, n), make([]ctrlkit.Action, n)
		for i := range n {
			calls[i], actions[i] = call{}, ctrlkit.NewAction(fmt.Sprint(i), work)
		}
		run(b, "direct calls", n, func(ctx context.Context) error {
			for _, c := range calls {
				if _, err := c.Run(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		run(b, "errors.Join", n, func(ctx context.Context) error {
			errs := make([]error, 0, n)
			for _, c := range calls {
				_, err := c.Run(ctx)
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
		run(b, "ctrlkit.Sequential", n, runs(ctrlkit.Sequential(actions...)))
		run(b, "ctrlkit.Join", n, runs(ctrlkit.Join(actions...)))
	}
}

// BenchmarkInParallel runs n actions beside one another: with errgroup, which keeps the first error
// only, with AggregateGoroutines of apimachinery, which keeps all but no results and no panics, and
// as workflows.
func BenchmarkInParallel(b *testing.B) {
	for _, n := range []int{10, 100} {
		funcs, actions := make([]func() error, n), make([]ctrlkit.Action, n)
		for i := range n {
			funcs[i] = func() error { _, err := work(context.Background()); return err }
			actions[i] = ctrlkit.NewAction(fmt.Sprint(i), work)
		}
		run(b, "errgroup", n, func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			for range n {
				g.Go(func() error { _, err := work(ctx); return err })
			}
			return g.Wait()
		})
		run(b, "AggregateGoroutines", n, func(context.Context) error { return utilerrors.AggregateGoroutines(funcs...) })
		run(b, "ctrlkit.ParallelJoin", n, runs(ctrlkit.ParallelJoin(actions...)))
		run(b, "ctrlkit.Graph", n, runs(ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			for _, a := range actions {
				g.Add(a)
			}
		})))
	}
}

func runs(a ctrlkit.Action) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := ctrlkit.IgnoreExit(a.Run(ctx))
		return err
	}
}

func run(b *testing.B, name string, n int, do func(context.Context) error) {
	b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
		b.ReportAllocs()
		ctx := context.Background()
		for b.Loop() {
			if err := do(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}
