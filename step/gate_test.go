// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
