// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An object that was written since the process has first written one of its kind is not older than
// the process, and not read from the API server. All others are, once.
func TestTheFenceOfObjectsOfTheEpoch(t *testing.T) {
	thing := func(name string) *Thing {
		return &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	}
	w := newWorld(t, newThing(), thing("untouched"), thing("edited"))
	options := w.options()
	options.APIReader = w.liveReader()
	start := func() func(name string) int {
		e := w.engineWith(options, doing("A", func(ctx context.Context, req *request) error {
			return client.IgnoreAlreadyExists(req.Client.Create(ctx, configMap(req.Object.Name, nil)))
		}))
		return func(name string) (live int) {
			t.Helper()
			w.take(&w.live)
			if _, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: name}}); err != nil {
				t.Fatal(err)
			}
			return len(w.take(&w.live))
		}
	}
	reads := start()
	same(t, "live reads for the first object", 1, reads("a"))
	edited := thing("edited")
	must(t, w.server.Get(t.Context(), client.ObjectKeyFromObject(edited), edited))
	edited.Labels = map[string]string{"color": "blue"}
	must(t, w.server.Update(t.Context(), edited))
	w.create(thing("new"))
	for name, want := range map[string]int{"new": 0, "edited": 0, "untouched": 1} {
		same(t, name, want, reads(name))
	}
	reads = start() // another process knows of no write of its own
	same(t, "live reads after a restart", 1, reads("new"))
}
