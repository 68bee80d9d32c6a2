// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
)

// An object whose shard label another client has changed leaves the cache. No cleanup is pending for
// it. For one that was removed with its label a cleanup stays pending.
func TestMovedByAnotherClient(t *testing.T) {
	shard := &shard.Shard{} // its name is empty
	for _, tt := range []struct {
		name, label string
		pending     bool
	}{{"moved", "other", false}, {"removed", "", true}} {
		t.Run(tt.name, func(t *testing.T) {
			e := &Engine[*corev1.ConfigMap]{options: Options[*corev1.ConfigMap]{Shard: shard}, plan: &plan[*corev1.ConfigMap]{}}
			e.finalizers.own = "test.ctrlkit.dev/thing"
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "1", ResourceVersion: "2", Finalizers: []string{e.finalizers.own}}}
			memory := e.memories.of(client.ObjectKeyFromObject(obj))
			memory.startFor(obj)
			memory.protection.setHeld(obj.ResourceVersion)
			obj.ResourceVersion, obj.Labels = "3", map[string]string{shard.Label(): tt.label}
			e.EventFilter().Delete(event.DeleteEvent{Object: obj})
			now := e.memories.of(client.ObjectKeyFromObject(obj))
			if pending := now.protection.isPending() || now.protection.hasOrphans(); pending != tt.pending {
				t.Errorf("a cleanup is pending: %v", pending)
			}
		})
	}
}
