// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
)

// violatedIn returns the names of the checks that do not hold.
func violatedIn(checks []check) []string {
	var names []string
	for _, c := range checks {
		if len(c.violations) > 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// asWanted returns the Simples of a perfect operator.
func (s *simples) asWanted() []v1.Simple {
	var objects []v1.Simple
	for i, want := range s.model {
		if !want.exists {
			continue
		}
		obj := s.object(i, want)
		obj.Generation, obj.Status.ObservedGeneration = 3, 3
		if want.label != "" {
			obj.Labels = map[string]string{coWriter: want.label}
		}
		if want.divisor != 0 {
			obj.Status.Quotient, obj.Status.Remainder = new(want.dividend/want.divisor), new(want.dividend%want.divisor)
		}
		obj.Status.Conditions = conditionsAs(want.readiness(), 3)
		objects = append(objects, *obj)
	}
	return objects
}

func testedSimples() *simples {
	return &simples{options: &options{}, random: newRandom(1, "test"), model: []simple{
		{exists: true, dividend: 7, divisor: 2, label: "5"},
		{exists: true, dividend: 7},
		{},
	}}
}

// The checks find what is planted, and nothing else.
func TestSimplesChecks(t *testing.T) {
	tests := []struct {
		name  string
		plant func(seven, zero *v1.Simple)
		more  []v1.Simple
		want  []string
	}{
		{name: "all is well", plant: func(_, _ *v1.Simple) {}},
		{name: "a wrong quotient", plant: func(seven, _ *v1.Simple) { seven.Status.Quotient = new(int64(4)) }, want: []string{"quotients and remainders"}},
		{name: "no remainder", plant: func(seven, _ *v1.Simple) { seven.Status.Remainder = nil }, want: []string{"quotients and remainders"}},
		{name: "a quotient of a division by zero", plant: func(_, zero *v1.Simple) { zero.Status.Quotient = new(int64(0)) }, want: []string{"quotients and remainders"}},
		{name: "an old status", plant: func(seven, _ *v1.Simple) { seven.Status.ObservedGeneration = 2 }, want: []string{"quotients and remainders"}},
		{name: "another spec", plant: func(seven, _ *v1.Simple) { seven.Spec.Dividend = 8 }, want: []string{"quotients and remainders"}},
		{name: "not ready", plant: func(seven, zero *v1.Simple) { seven.Status.Conditions = zero.Status.Conditions }, want: []string{"Ready"}},
		{name: "ready all the same", plant: func(seven, zero *v1.Simple) { zero.Status.Conditions = seven.Status.Conditions }, want: []string{"Ready"}},
		{name: "a co-writer's label is removed", plant: func(seven, _ *v1.Simple) { seven.Labels = nil }, want: []string{"labels of a co-writer"}},
		{name: "an object that was deleted", plant: func(_, _ *v1.Simple) {}, more: []v1.Simple{{ObjectMeta: metav1.ObjectMeta{Name: "soak-02"}}}, want: []string{"missing or superfluous objects"}},
		{name: "an object that was never made", plant: func(_, _ *v1.Simple) {}, more: []v1.Simple{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}, want: []string{"missing or superfluous objects"}},
		{name: "an object is missing", plant: func(seven, _ *v1.Simple) { seven.Name = "soak-02" }, want: []string{"missing or superfluous objects"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := testedSimples()
			objects := s.asWanted()
			test.plant(&objects[0], &objects[1])
			checks := s.compareWith(append(objects, test.more...), time.Time{})
			if diff := cmp.Diff(test.want, violatedIn(checks)); diff != "" {
				t.Errorf("violated checks (-want +got):\n%s\n%+v", diff, checks)
			}
		})
	}
}

// When all edits are made, the cluster is what the model says, as far as no operator is needed for
// that.
func TestEditsOfSimplesMakeTheModel(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		user := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.Simple{}).Build()
		s := newSimples(user, &options{objects: 5, seed: seed, chaos: 15 * time.Second, edits: span{100 * time.Millisecond, 400 * time.Millisecond}}).(*simples)
		if err := s.create(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.edits() {
			if err := e.apply(t.Context(), user); err != nil {
				t.Fatalf("seed %d, object %d: %s: %v", seed, e.lane, e.what, err)
			}
		}
		checks, err := s.compare(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		// The operator is missing.
		got := slices.DeleteFunc(violatedIn(checks), func(name string) bool { return name == "Ready" || name == "quotients and remainders" })
		if len(got) > 0 {
			t.Fatalf("seed %d: violated checks %q: %+v", seed, got, checks)
		}
		if violated := violatedIn(s.compareWith(s.asWanted(), time.Time{})); len(violated) > 0 {
			t.Errorf("seed %d: the model does not agree with itself: %q", seed, violated)
		}
	}
}
