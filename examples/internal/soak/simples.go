// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
)

// coWriter is a label that another controller keeps on the objects.
const coWriter = "example.com/co-writer"

// A simple is the model of one Simple.
type simple struct {
	exists            bool
	dividend, divisor int64
	label             string
}

// simples is the soak of examples/02_simple.
type simples struct {
	user    client.Client
	options *options
	random  *rand.Rand
	model   []simple // what the cluster should be
}

func newSimples(user client.WithWatch, o *options) subject {
	s := &simples{user: user, options: o, random: newRandom(o.seed, "edits of Simples")}
	for range o.objects {
		s.model = append(s.model, simple{exists: true, dividend: s.number(), divisor: s.number()})
	}
	return s
}

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

func (s *simples) name(i int) string { return fmt.Sprintf("soak-%02d", i) }

func (s *simples) key(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: s.name(i)}
}

func (s *simples) create(ctx context.Context) error {
	for i, want := range s.model {
		if err := create(ctx, s.user, s.object(i, want)); err != nil {
			return fmt.Errorf("creating Simple %s: %w", s.name(i), err)
		}
	}
	return nil
}

func (s *simples) object(i int, want simple) *v1.Simple {
	return &v1.Simple{ObjectMeta: s.key(i), Spec: v1.SimpleSpec{Dividend: want.dividend, Divisor: want.divisor}}
}

func (s *simples) progress() string { return fmt.Sprintf("%d Simples", len(s.model)) }

func (s *simples) edits() []edit {
	return planEdits(s.random, len(s.model), s.options.chaos, s.options.edits, s.next)
}

// next plans an edit of a Simple.
func (s *simples) next(i int) edit {
	m := &s.model[i]
	if !m.exists {
		*m = simple{exists: true, dividend: s.number(), divisor: s.number()}
		obj := s.object(i, *m)
		return edit{what: fmt.Sprintf("created, %d/%d", m.dividend, m.divisor), apply: func(ctx context.Context, c client.Client) error {
			return create(ctx, c, obj)
		}}
	}
	switch k := s.random.IntN(10); {
	case k < 5:
		m.dividend, m.divisor = s.number(), s.number()
		return edit{
			what:  fmt.Sprintf("spec changed to %d/%d", m.dividend, m.divisor),
			apply: s.patch(i, `{"spec":{"dividend":%d,"divisor":%d}}`, m.dividend, m.divisor),
		}
	case k < 7:
		m.label = strconv.Itoa(s.random.IntN(1000))
		return edit{what: "label changed to " + m.label, apply: s.patch(i, `{"metadata":{"labels":{%q:%q}}}`, coWriter, m.label)}
	case k < 8:
		obj, patch := &v1.Simple{ObjectMeta: s.key(i)}, []byte(`{"status":{"quotient":4711,"remainder":null,"conditions":null}}`)
		return edit{what: "status overwritten", apply: func(ctx context.Context, c client.Client) error {
			return c.Status().Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		}}
	default:
		*m = simple{}
		obj := &v1.Simple{ObjectMeta: s.key(i)}
		return edit{what: "deleted", apply: func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj) }}
	}
}

func (s *simples) patch(i int, format string, args ...any) func(context.Context, client.Client) error {
	meta, patch := s.key(i), fmt.Appendf(nil, format, args...)
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, &v1.Simple{ObjectMeta: meta}, client.RawPatch(types.MergePatchType, patch))
	}
}

func (s *simples) compare(ctx context.Context, steadySince time.Time) ([]check, error) {
	var now v1.SimpleList
	if err := s.user.List(ctx, &now, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Simples: %w", err)
	}
	return s.compareWith(now.Items, steadySince), nil
}

// compareWith compares objects with the model.
func (s *simples) compareWith(objects []v1.Simple, steadySince time.Time) []check {
	results, ready, labels := check{name: "quotients and remainders"}, check{name: "Ready"}, check{name: "labels of a co-writer"}
	existence := check{name: "missing or superfluous objects"}
	there := make(map[string]*v1.Simple)
	for i := range objects {
		there[objects[i].Name] = &objects[i]
	}
	existing, divided := 0, 0
	for i, want := range s.model {
		obj := there[s.name(i)]
		delete(there, s.name(i))
		found := func(to *check, format string, args ...any) {
			to.violations = append(to.violations, violation{object: "Simple " + s.name(i), lane: i, evidence: fmt.Sprintf(format, args...)})
		}
		switch {
		case obj == nil && want.exists:
			found(&existence, "it does not exist, want %d/%d", want.dividend, want.divisor)
			continue
		case obj != nil && !want.exists:
			found(&existence, "%s", leftover(obj).evidence)
			continue
		case obj == nil:
			continue
		}
		existing++
		if want.divisor != 0 {
			divided++
		}
		if problem := want.resultProblem(obj); problem != "" {
			found(&results, "%s", problem)
		}
		if problem := want.readiness().problem(obj.Status.Conditions, obj.Generation, steadySince); problem != "" {
			found(&ready, "%s", problem)
		}
		if got := obj.Labels[coWriter]; got != want.label {
			found(&labels, "label %s is %q, want %q", coWriter, got, want.label)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		v := leftover(there[name])
		existence.violations = append(existence.violations, v)
	}
	ready.seen = fmt.Sprintf("%d wrong; True %d of %d, else False for the right reason", len(ready.violations), divided, existing)
	results.seen = fmt.Sprintf("%d wrong, of %d", len(results.violations), existing)
	return []check{existence, results, ready, labels}
}

func (want simple) readiness() readiness {
	return readiness{ready: want.divisor != 0, reason: "DivisorIsZero"}
}

// resultProblem says what is wrong with the status of a Simple.
func (want simple) resultProblem(obj *v1.Simple) string {
	if obj.Spec.Dividend != want.dividend || obj.Spec.Divisor != want.divisor {
		return fmt.Sprintf("the spec is %d/%d, want %d/%d", obj.Spec.Dividend, obj.Spec.Divisor, want.dividend, want.divisor)
	}
	text := func(n *int64) string {
		if n == nil {
			return "none"
		}
		return strconv.FormatInt(*n, 10)
	}
	quotient, remainder := "none", "none"
	if want.divisor != 0 {
		quotient, remainder = strconv.FormatInt(want.dividend/want.divisor, 10), strconv.FormatInt(want.dividend%want.divisor, 10)
	}
	got := obj.Status
	if text(got.Quotient) != quotient || text(got.Remainder) != remainder {
		return fmt.Sprintf("%d/%d: quotient %s and remainder %s, want %s and %s",
			want.dividend, want.divisor, text(got.Quotient), text(got.Remainder), quotient, remainder)
	}
	if got.ObservedGeneration != obj.Generation {
		return fmt.Sprintf("the status is about generation %d, want %d", got.ObservedGeneration, obj.Generation)
	}
	return ""
}

func (s *simples) deleteAll(ctx context.Context) error {
	if err := s.user.DeleteAllOf(ctx, &v1.Simple{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("deleting the Simples: %w", err)
	}
	return nil
}

func (s *simples) remaining(ctx context.Context) ([]violation, error) {
	return listed(ctx, s.user, &v1.SimpleList{})
}
