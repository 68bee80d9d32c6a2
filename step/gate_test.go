// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
)

// The order of the gates is a contract: see "The life of a reconcile" in docs/architecture.md.
func TestGatesInOrder(t *testing.T) {
	var got []string
	for _, g := range gates[*corev1.ConfigMap]() {
		got = append(got, g.name)
	}
	want := []string{
		"a cleanup is pending for an object of this name that is gone",
		"no watch has reported a change",
		"the object does not exist",
		"another shard has the object",
		"another operator reconciles the object",
		"the cache lacks our last write",
		"a hot loop is slowed down",
		"nothing has changed",
		"the object is paused",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

// A filter that the builder had before hides events. Which it has, is found in a field of the
// builder that is not exported: this test fails if a new version calls it otherwise.
func TestFiltersOfABuilder(t *testing.T) {
	tests := []struct {
		name string
		add  func(b *builder.Builder)
		want bool
	}{
		{"none", func(*builder.Builder) {}, false},
		{"those of WatchNamed", func(b *builder.Builder) { b.WithEventFilter(&references.Index{}) }, false},
		{"another one", func(b *builder.Builder) { b.WithEventFilter(predicate.GenerationChangedPredicate{}) }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := &builder.Builder{}
			test.add(b)
			if got := filtered[*corev1.ConfigMap](b); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
