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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

// A watching step keeps a ConfigMap, and declares a watch of it.
type watching struct {
	step.Step[*Thing]
	watch step.Watch
}

func (w watching) Watches() []step.Watch { return []step.Watch{w.watch} }

// An object that is owned and that others may wait for is watched once: each of its events is noted
// and recorded once, and leads to its owner and to those that it is named for.
func TestOwnedAndNamedWatch(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var mu sync.Mutex
		var noted, ran []string
		keep := doing("Keep", func(ctx context.Context, req *request) (ctrl.Result, error) {
			mu.Lock()
			ran = append(ran, req.Object.Name)
			mu.Unlock()
			if req.Object.Name != "a" {
				return ctrlkit.NoRequeue()
			}
			return ctrlkit.RequeueIfError(apply.Ensure(ctx, req, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}}))
		})
		c.create(&Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})
		c.start(operator{name: "things", steps: steps{watching{keep, step.Watch{
			Object: &corev1.ConfigMap{}, Owned: true,
			Named: func(client.Object, schema.GroupKind) []client.ObjectKey {
				return []client.ObjectKey{{Namespace: "default", Name: "b"}}
			},
			Note: func(kind schema.GroupKind, before, now client.Object) {
				mu.Lock()
				defer mu.Unlock()
				noted = append(noted, kind.Kind)
			},
		}}}})
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
