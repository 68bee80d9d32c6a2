// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

// watching returns a step with a watch.
func watching(s step.Step[*Thing], watch step.Watch) step.Step[*Thing] {
	s.Watches = func() []step.Watch { return []step.Watch{watch} }
	return s
}

// An object that is owned and that others may wait for is watched once: each of its events is noted
// and recorded once, and leads to its owner and to those that it is named for.
func TestOwnedAndNamedWatch(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var mu sync.Mutex
		var noted, ran []string
		keep := doing("Keep", func(ctx context.Context, req *request) error {
			mu.Lock()
			ran = append(ran, req.Object.Name)
			mu.Unlock()
			if req.Object.Name != "a" {
				return nil
			}
			return apply.Ensure(ctx, req, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}})
		})
		c.create(&Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})
		c.start(operator{name: "things", steps: steps{watching(keep, step.Watch{
			Object: &corev1.ConfigMap{}, Owned: true,
			Mapped: func(client.Object, schema.GroupKind) []client.ObjectKey {
				return []client.ObjectKey{{Namespace: "default", Name: "b"}}
			},
			Note: func(kind schema.GroupKind, before, now client.Object) {
				mu.Lock()
				defer mu.Unlock()
				noted = append(noted, kind.Kind)
			},
		})}})
		pass(5 * time.Second)
		mu.Lock()
		noted, ran = nil, nil
		mu.Unlock()
		c.must(c.user.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}}))
		pass(5 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		same(t, "noted: deleted and created", []string{"ConfigMap", "ConfigMap"}, noted)
		slices.Sort(ran)
		same(t, "reconciled", []string{"a", "b"}, slices.Compact(ran))
		var causes []string
		for _, cause := range c.triggered("things") {
			if strings.Contains(cause, "ConfigMap") {
				causes = append(causes, cause)
			}
		}
		slices.Sort(causes)
		want := []string{
			"a: ConfigMap default/child created", "a: ConfigMap default/child created", "a: ConfigMap default/child deleted",
			"b: ConfigMap default/child created", "b: ConfigMap default/child created", "b: ConfigMap default/child deleted",
		}
		same(t, "causes", want, causes)
	})
}
