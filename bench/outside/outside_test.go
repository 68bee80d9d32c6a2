// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/external"
)

// A resource is created, changed and deleted, and each call counts.
func TestSystem(t *testing.T) {
	system, err := Start(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	client, ctx := NewClient(system.URL()), t.Context()
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "u"}, Spec: widget.Spec{First: "small"}}
	observe := func(want external.State) {
		t.Helper()
		if seen, err := client.Observe(ctx, w, "w-u"); err != nil || seen.State != want {
			t.Errorf("state %v, want %v, error %v", seen.State, want, err)
		}
	}
	observe(external.Absent)
	if id, err := client.Create(ctx, w, external.Creation{Name: "w-u"}); id != "w-u" || err != nil {
		t.Errorf("%q, error %v", id, err)
	}
	if _, err := client.Create(ctx, w, external.Creation{Name: "w-u"}); err == nil {
		t.Error("a resource that exists is created again")
	}
	observe(external.UpToDate)
	w.Spec.First = "large"
	observe(external.Drifted)
	if err := client.Update(ctx, w, "w-u"); err != nil {
		t.Error(err)
	}
	seen, err := client.Observe(ctx, w, "w-u")
	if err != nil || seen.Owner != external.OwnerOf(w) || string(seen.Connection["password"]) != "password-1" {
		t.Errorf("%+v, error %v", seen, err)
	}
	if diff := cmp.Diff(map[string]int{"large": 1}, system.Sizes()); diff != "" {
		t.Error(diff)
	}
	if err := client.Delete(ctx, w, "w-u"); err != nil {
		t.Error(err)
	}
	observe(external.Absent)
	if _, err := client.Create(ctx, w, external.Creation{Name: "w-u"}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(Calls{Creates: 3, Observations: 5, Updates: 1, Deletes: 1}, system.Calls()); diff != "" {
		t.Error(diff)
	}
	if n := len(system.Polls()); n != 3 || system.Twice() != 1 {
		t.Errorf("%d observations of what exists, %d created twice", n, system.Twice())
	}
}
