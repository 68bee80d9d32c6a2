// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A verdict compares what the witness says with what the API server does when the intent is applied
// again.
type verdict string

const (
	unchanged verdict = "unchanged" // not detected, and the apply changes nothing
	detected  verdict = "detected"  // detected, and the apply changes the object
	hole      verdict = "hole"      // not detected, although the apply changes the object
	needless  verdict = "needless"  // detected, although the apply changes nothing
	refused   verdict = "refused"   // detected, and the apply is refused
)

type soundCase struct {
	name   string
	intent string
	act    func(c *child)
	want   verdict
	why    string // what Why says, if the change is detected by an entry
}

// The witness says the same on both servers, and it is right, or the page in docs/design says why
// it is not.
func TestSound(t *testing.T) {
	rings.Test(t, "takes seconds")
	t.Run("memory", func(t *testing.T) { runSound(t, memoryServer(t), soundCases()) })
	t.Run("real", func(t *testing.T) {
		s := realServer(t)
		runSound(t, s, append(soundCases(), realCases...))
		t.Run("admission", func(t *testing.T) { runAdmission(t, s) })
	})
}

func runSound(t *testing.T, s *server, cases []soundCase) {
	for i, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			c := s.child(t, fmt.Sprintf("case-%d", i), tt.intent)
			before := c.apply()
			if !c.unchanged(before) {
				t.Fatalf("just applied: %s\n%s", c.unchangedWhy(before), managedFields(before))
			}
			if again := c.apply(); !cmp.Equal(meaning(before), meaning(again)) || !c.unchanged(again) {
				t.Fatal("applied twice: the object has changed")
			}
			tt.act(c)
			got, why, live := c.judge()
			if got != tt.want || tt.why != "" && why != tt.why {
				t.Errorf("got %s (%s), want %s (%s)\n%s", got, why, tt.want, tt.why, managedFields(live))
			}
			if after := c.get(); got != refused && !c.unchanged(after) {
				t.Errorf("after the repair: %s\n%s", c.unchangedWhy(after), managedFields(after))
			}
		})
	}
}

// meaning returns an object without the times of its managed fields and what follows from them. An
// apply that changes nothing still writes when entries of the same second get another order by it,
// on both servers.
func meaning(u *unstructured.Unstructured) any {
	var entries []string
	for line := range strings.Lines(managedFields(u)) {
		entries = append(entries, strings.TrimSpace(line))
	}
	slices.Sort(entries)
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	return []any{u.Object, entries}
}

// judge asks the witness, and then the server.
func (c *child) judge() (got verdict, why string, live *unstructured.Unstructured) {
	c.t.Helper()
	live = c.get()
	gap, found := witness.Why(live.GetManagedFields(), ours, c.intent)
	if covers := witness.Covers(live.GetManagedFields(), ours, c.intent); covers == found {
		c.t.Errorf("Covers returned %t, and Why %t", covers, found)
	}
	if found {
		why = gap.String()
	}
	seen := !c.unchanged(live)
	after, err := c.tryApply(ours, true, withHash(c.intent))
	if apierrors.IsInvalid(err) && seen {
		return refused, why, live
	}
	c.must(err)
	changes := !cmp.Equal(meaning(live), meaning(after))
	switch {
	case seen && changes:
		return detected, why, live
	case seen:
		return needless, why, live
	case changes:
		return hole, why, live
	}
	return unchanged, why, live
}
