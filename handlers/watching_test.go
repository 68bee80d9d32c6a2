// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/state"
	"github.com/ctrlkit/ctrlkit/step"
)

// watching returns a step of Projects that notes its calls as one:object, and declares a watch.
func watching(w *world, watch step.Watch) step.Step[*Project] {
	return step.Step[*Project]{
		Name: "watching", Watches: func() []step.Watch { return []step.Watch{watch} },
		Do: func(_ context.Context, req *step.Request[*Project]) error {
			w.call("one:" + req.Object.Name)
			return nil
		},
	}
}

// The cache of a registry keeps the indexes that steps declare, also if two handlers have the same one.
func TestStepsThatListByAnIndex(t *testing.T) {
	index := state.Index[client.Object]{Name: "of", Values: func(obj client.Object) []string { return []string{obj.GetLabels()["of"]} }}
	withProjects(t, "a b", func(w *world) {
		for _, name := range []string{"x", "y", "z"} {
			s := newSecret(name)
			s.Labels = map[string]string{"of": map[string]string{"x": "a", "y": "b", "z": "a"}[name]}
			w.create(s)
		}
		for _, handler := range []string{"one", "two"} {
			w.register(handlers.Steps(handler, handlers.StepsOptions[*Project]{}, step.Step[*Project]{
				Name: "listing", Watches: func() []step.Watch {
					return []step.Watch{{Object: &corev1.Secret{}, Owned: true, Indexes: []state.Index[client.Object]{index}}}
				},
				Do: func(ctx context.Context, req *step.Request[*Project]) error {
					list := &corev1.SecretList{}
					if err := req.Client.List(ctx, list, client.MatchingFields{index.Name: req.Object.Name}); err != nil {
						return err
					}
					w.call(fmt.Sprint(handler, ":", req.Object.Name, len(list.Items)))
					return nil
				},
			}))
		}
		w.start()
		w.expect("at the start", "one:a2, one:b1, two:a2, two:b1")
	})
}
