// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

func TestSumIsJoinOfAllParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(outcomes, 0, 5).Draw(t, "parts")
		before := make([]value, len(parts))
		var sum outcome.Sum[string]
		var joined sut
		for i, part := range parts {
			before[i] = valueOf(part)
			sum.Add(part)
			joined = joined.Join(part)
			if sum.Interrupted() != joined.Interrupted {
				t.Errorf("after %d parts, Interrupted is %v, want %v", i+1, sum.Interrupted(), joined.Interrupted)
			}
		}
		if diff := cmp.Diff(valueOf(joined), valueOf(sum.Outcome())); diff != "" {
			t.Errorf("(-join +sum):\n%s", diff)
		}
		for i, part := range parts {
			if diff := cmp.Diff(before[i], valueOf(part)); diff != "" {
				t.Errorf("part %d was changed (-before +after):\n%s", i, diff)
			}
		}
	})
}

func TestTextOfManyCausesIsBounded(t *testing.T) {
	many := func(n int, text string) error {
		errs := make([]error, n)
		for i := range errs {
			errs[i] = fmt.Errorf("%s %d", text, i)
		}
		return outcome.JoinErrors(errs)
	}
	for _, tt := range []struct {
		name  string
		err   error
		begin string
		end   string
	}{
		{"few are all there", many(100, "x"), "x 0; x 1; ", "; x 98; x 99"},
		{"many end in how many more", many(40_000, strings.Repeat("x", 91)), strings.Repeat("x", 91) + " 0; ", " 42; and 39957 more"},
		{"one that is long is whole", many(3, strings.Repeat("x", 10_000)), "xxx", "x 0; and 2 more"},
		{"lists within lists", outcome.JoinErrors([]error{many(5_000, "a"), many(5_000, "b")}), "a 0; a 1; ", "; and 1 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.err.Error()
			if !strings.HasPrefix(got, tt.begin) || !strings.HasSuffix(got, tt.end) {
				t.Errorf("got %.100s ... %s", got, got[max(0, len(got)-100):])
			}
			if len(got) > 3*outcome.LongestText {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
	last := errors.New("last")
	if err := outcome.JoinErrors(append(outcome.CausesOf(many(40_000, "x")), last)); !errors.Is(err, last) {
		t.Error("a cause that is not in the text is not in the error")
	}
}
