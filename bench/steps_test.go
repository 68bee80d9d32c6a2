// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/step"
)

// BenchmarkEmptySteps runs an engine with n steps that do nothing, for an object that needs no
// write. The difference is the cost of a step.
func BenchmarkEmptySteps(b *testing.B) {
	var one float64
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			reconciler, request := emptySteps(b, n)
			ctx := log.IntoContext(b.Context(), logr.Discard())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reconciler.Reconcile(ctx, request); err != nil {
					b.Fatal(err)
				}
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if n == 1 {
				one = each
				return
			}
			b.ReportMetric((each-one)/float64(n-1), "ns/further-step")
		})
	}
}

// emptySteps returns an engine of n steps, and the name of a Widget that is done.
func emptySteps(tb testing.TB, n int) (*step.Engine[*widget.Widget], ctrl.Request) {
	tb.Helper()
	scheme, err := widget.NewScheme()
	if err != nil {
		tb.Fatal(err)
	}
	w := &widget.Widget{}
	w.Namespace, w.Name, w.UID = "default", "one", "1"
	c := &copying{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(w).WithStatusSubresource(w).Build()}
	steps := make([]step.Step[*widget.Widget], n)
	for i := range steps {
		steps[i] = step.Step[*widget.Widget]{Name: fmt.Sprint(i), Do: func(context.Context, *step.Request[*widget.Widget]) error { return nil }}
	}
	engine, err := step.New(step.Options[*widget.Widget]{Name: "widget", Client: c}, steps...)
	if err != nil {
		tb.Fatal(err)
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}
	if _, err := engine.Reconcile(log.IntoContext(tb.Context(), logr.Discard()), request); err != nil {
		tb.Fatal(err)
	}
	done := &widget.Widget{}
	if err := c.Client.Get(tb.Context(), request.NamespacedName, done); err != nil {
		tb.Fatal(err)
	}
	if len(done.Status.Conditions) == 0 {
		tb.Fatal("nothing was written")
	}
	c.done = done
	return engine, request
}

// copying is a client whose Get costs no more than a cache that does not copy.
type copying struct {
	client.Client
	done *widget.Widget
}

func (c *copying) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.done == nil {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	*obj.(*widget.Widget) = *c.done //nolint:errcheck // nothing else is read
	return nil
}
