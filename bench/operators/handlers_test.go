// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/process"
)

// Each of the handlers that are measured sees each ConfigMap, so that a heap is one of handlers that
// have run.
func TestEachHandlerRuns(t *testing.T) {
	const handlers = 3
	for _, o := range All() {
		if o.AddHandlers == nil {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			before := idled.Load()
			o.Add = func(mgr ctrl.Manager, settings process.Settings) error {
				settings.Handlers = handlers
				return o.AddHandlers(mgr, settings)
			}
			c := start(t, o, "")
			for _, name := range []string{"one", "two"} {
				must(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))
			}
			await(t, c, "all ConfigMaps are seen by all handlers", func(context.Context, client.Client) bool { return idled.Load()-before == 2*handlers })
		})
	}
}
