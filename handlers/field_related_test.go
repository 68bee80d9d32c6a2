// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owners starts a handler of Projects to which Secrets lead, with two Projects.
func (w *world) owners(f floor) (a, b *Project) {
	w.must(w.server.Install(definitionOf("Project")))
	a, b = newProject("a"), newProject("b")
	w.create(a, b)
	project := w.notes("project")
	project.like, project.owned = &Project{}, &corev1.Secret{}
	w.mustHandle(f, project)
	f.start()
	w.takeCalls()
	return a, b
}

// A deletion that the watch had missed was dropped.
func TestFieldMissedDeletions(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		a, _ := w.owners(f)
		secret := newSecret("s")
		w.create(ownedBy(secret, a, "example.com/v1"))
		time.Sleep(time.Minute)
		w.takeCalls()
		w.outage("secrets", func() { w.must(w.user.Delete(w.ctx, secret)) })
		time.Sleep(5 * time.Minute)
		return w.called("project:a")
	})
}

// The former owner of an object that had changed hands was not enqueued.
func TestFieldChangedHands(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		a, b := w.owners(f)
		secret := newSecret("s")
		w.create(ownedBy(secret, a, "example.com/v1"))
		w.settle()
		w.takeCalls()
		w.must(w.user.Update(w.ctx, ownedBy(secret, b, "example.com/v1")))
		w.settle()
		return w.called("project:a, project:b")
	})
}

// Owners of another version of the same kind were not found.
func TestFieldOwnerOfAnotherVersion(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		a, _ := w.owners(f)
		w.create(ownedBy(newSecret("s"), a, "example.com/v1beta1"))
		w.settle()
		return w.called("project:a")
	})
}

// A related change waited for the rest of a backoff, and made it longer.
func TestFieldRelatedChangeWaitsForTheBackoff(t *testing.T) {
	inTheField(t, func(w *world, f floor) string {
		w.must(w.server.Install(definitionOf("Project")))
		a := newProject("a")
		w.create(a)
		w.mustHandle(f, scene{name: "one", like: &Project{}, owned: &corev1.Secret{}, call: func(ctx context.Context, _ string, _ client.Object) error {
			if err := w.user.Get(ctx, key("s"), newSecret("s")); err != nil {
				return errors.New("no secret")
			}
			w.call("done")
			return nil
		}})
		f.start()
		time.Sleep(time.Hour)
		w.create(ownedBy(newSecret("s"), a, "example.com/v1"))
		w.settle()
		return w.called("done")
	})
}
