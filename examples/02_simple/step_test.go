// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
)

func TestDivide(t *testing.T) {
	got := ctrlkittest.Do(t, division, newSimple(7, 2), ctrlkittest.WithScheme(simScheme(t)), ctrlkittest.WithCRDs("config/crd/bases"))
	if want := `{"status":{"quotient":3,"remainder":1}}`; got.Saved != want || got.Err != nil {
		t.Errorf("saved %s and error %v, want %s", got.Saved, got.Err, want)
	}
}

func TestEnsureNonZeroDivisor(t *testing.T) {
	for divisor, want := range map[int64]string{
		0: "False DivisorIsZero: division by zero: change spec.divisor",
		2: "True DivisorIsNotZero",
	} {
		got := ctrlkittest.Do(t, nonZeroDivisor, newSimple(7, divisor), ctrlkittest.WithScheme(simScheme(t)), ctrlkittest.WithCRDs("config/crd/bases"))
		if c := got.Conditions[v1.ConditionDivisorNonZero]; c != want || got.Passed != (divisor != 0) {
			t.Errorf("dividing by %d: condition %q and passed: %t, want %q", divisor, c, got.Passed, want)
		}
	}
}

func newSimple(dividend, divisor int64) *v1.Simple {
	return &v1.Simple{Spec: v1.SimpleSpec{Dividend: dividend, Divisor: divisor}}
}
