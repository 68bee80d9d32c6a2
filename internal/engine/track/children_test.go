// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errRead = errors.New("the cache does not answer")

// A reconcile waits for the children that the one before has written, until the cache has them.
func TestExpectedChildren(t *testing.T) {
	tests := []struct {
		name  string
		write func(t *testing.T, c client.Client)
		want  bool // the cache is waited for
	}{
		{"nothing written", func(*testing.T, client.Client) {}, false},
		{"a child created", func(t *testing.T, c client.Client) { must(t, c.Create(t.Context(), pod("new"))) }, true},
		{"a child changed", func(t *testing.T, c client.Client) { label(t, c, "a", "ours") }, true},
		{"a child patched", func(t *testing.T, c client.Client) { must(t, c.Patch(t.Context(), pod("a"), tierPatch("ours"))) }, true},
		{"its status changed", func(t *testing.T, c client.Client) { must(t, c.Status().Update(t.Context(), get(t, c, "a"))) }, true},
		{"a child of a type that is not read", func(t *testing.T, c client.Client) {
			cm := &corev1.ConfigMap{}
			cm.Namespace, cm.Name = "default", "new"
			must(t, c.Create(t.Context(), cm))
		}, false},
		{"a dry run", func(t *testing.T, c client.Client) { must(t, c.Create(t.Context(), pod("new"), client.DryRunAll)) }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, stale := newServer(t, "a"), newServer(t, "a")
				record := &Record{}
				c := NewClient(server, record)
				must(t, c.List(t.Context(), &corev1.PodList{}))
				test.write(t, c)
				var expected Expected
				expected.Expect(record)
				same(t, "stale", test.want, expected.Stale(t.Context(), stale, time.Now()))
				forgotten := expected
				forgotten.Forget()
				if forgotten.Stale(t.Context(), stale, time.Now()) {
					t.Error("forgotten children are waited for")
				}
				late := expected
				same(t, "stale after", test.want, late.Stale(t.Context(), stale, time.Now().Add(longestExpected)))
				if late.Stale(t.Context(), stale, time.Now().Add(longestExpected+1)) {
					t.Error("they are waited for too long")
				}
				if expected.Stale(t.Context(), server, time.Now()) {
					t.Error("a cache that has all is stale")
				}
				if expected.Stale(t.Context(), stale, time.Now()) {
					t.Error("children that have arrived are waited for again")
				}
			})
		})
	}
}

// The reconciled object itself is no child: the engine waits for it by its version.
func TestTheObjectIsNoChild(t *testing.T) {
	record := &Record{}
	server := newServer(t, "a")
	get(t, NewClient(server, record), "a")
	c := NewClient(server, record.Unfenced())
	must(t, c.Patch(t.Context(), pod("a"), tierPatch("ours")))
	if got := record.Children(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	if got := record.Writes(); len(got) != 1 {
		t.Errorf("%d writes are noted, want one", len(got))
	}
}
