// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
)

// simples are the Simples of examples/02_simple.
type simples struct {
	*population
	specs []v1.SimpleSpec
}

func newSimples(user client.WithWatch, o *options) subject {
	s := &simples{population: newPopulation(user, o, "Simple", &v1.SimpleList{}), specs: make([]v1.SimpleSpec, o.objects)}
	s.details = s
	for i := range s.specs {
		s.renew(i)
	}
	return s
}

func (*simples) checks() []string { return []string{"quotients and remainders"} }

func (s *simples) renew(i int) { s.specs[i] = v1.SimpleSpec{Dividend: s.number(), Divisor: s.number()} }

// number returns mostly small numbers, zero often, and sometimes the largest and the smallest.
func (s *simples) number() int64 {
	switch s.random.IntN(20) {
	case 0:
		return math.MaxInt64
	case 1:
		return math.MinInt64
	default:
		return s.random.Int64N(11) - 5
	}
}

func (s *simples) object(i int) client.Object {
	return &v1.Simple{ObjectMeta: name("soak", i), Spec: s.specs[i]}
}

func (s *simples) prepare(context.Context, int) error { return nil }

func (s *simples) edit(i int, exists bool, k int) (edit, bool) {
	switch {
	case !exists || k >= 60:
		return edit{}, false
	case k < 50:
		s.renew(i)
		spec := s.specs[i]
		return edit{
			what:  fmt.Sprintf("spec changed to %d/%d", spec.Dividend, spec.Divisor),
			apply: patching(s.object(i), `{"spec":{"dividend":%d,"divisor":%d}}`, spec.Dividend, spec.Divisor),
		}, true
	}
	obj, patch := s.object(i), []byte(`{"status":{"quotient":4711,"remainder":null,"conditions":null}}`)
	return edit{what: "status overwritten", apply: func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch))
	}}, true
}

func (s *simples) want(i int) readiness {
	return readiness{ready: s.specs[i].Divisor != 0, reason: "DivisorIsZero"}
}

func (s *simples) problem(i int, obj client.Object) string {
	got, spec := obj.(*v1.Simple), s.specs[i] //nolint:errcheck // nothing else is listed
	var quotient, remainder *int64
	if spec.Divisor != 0 {
		quotient, remainder = new(spec.Dividend/spec.Divisor), new(spec.Dividend%spec.Divisor)
	}
	switch {
	case got.Spec != spec:
		return fmt.Sprintf("the spec is %+v, want %+v", got.Spec, spec)
	case !ptr.Equal(got.Status.Quotient, quotient) || !ptr.Equal(got.Status.Remainder, remainder):
		return fmt.Sprintf("%+v: quotient %s and remainder %s, want %s and %s",
			spec, text(got.Status.Quotient), text(got.Status.Remainder), text(quotient), text(remainder))
	case got.Status.ObservedGeneration != got.Generation:
		return fmt.Sprintf("the status is about generation %d, want %d", got.Status.ObservedGeneration, got.Generation)
	}
	return ""
}

func text(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

func (*simples) check(context.Context, *population, *checks) error { return nil }
