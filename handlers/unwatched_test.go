// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// An engine of a handler reports what its steps read and nothing watches: neither they nor Related.
func TestStepsThatReadWhatNothingWatches(t *testing.T) {
	secretOf := func(p *Project) []client.ObjectKey { return []client.ObjectKey{{Name: p.Spec.Secret}} }
	for _, test := range []struct {
		name    string
		options handlers.StepsOptions[*Project]
		want    int
	}{
		{"nothing watches it", handlers.StepsOptions[*Project]{}, 1},
		{"another kind is related", handlers.StepsOptions[*Project]{Related: []step.Watch{step.WatchOwned(&corev1.ConfigMap{})}}, 1},
		{"it is related", handlers.StepsOptions[*Project]{Related: []step.Watch{step.WatchNamed(&corev1.Secret{}, secretOf)}}, 0},
		{"it is read on purpose", handlers.StepsOptions[*Project]{Unwatched: []client.Object{&corev1.Secret{}}}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			withProjects(t, "a", func(w *world) {
				w.register(handlers.Steps("one", test.options, step.Step[*Project]{Name: "Read", Do: func(ctx context.Context, req *step.Request[*Project]) error {
					_, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: "s"})
					return err
				}}))
				w.start()
				w.mu.Lock()
				defer w.mu.Unlock()
				found := map[string]bool{}
				for _, e := range w.entries {
					if _, ok := e.Event.(journal.Unwatched); ok {
						found[e.Event.String()] = true
					}
				}
				if len(found) != test.want {
					t.Errorf("reported: %v, want %d", found, test.want)
				}
			})
		})
	}
}
