// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// What the options do not say comes from the manager, and what they say stays.
func TestFromManager(t *testing.T) {
	w := newWorld(t, newThing())
	mgr := &fakeManager{client: w.client}
	var observed, own int
	must(t, managers.AddObserver(mgr, observerFunc(func(journal.Entry) { observed++ })))
	options := step.Options[*Thing]{Name: "things", Observers: []journal.Observer{observerFunc(func(journal.Entry) { own++ })}}
	engine, err := step.FromManager(mgr, options, doing("A", does(func(_ context.Context, req *request) {
		req.Event("Normal", "Seen", "See", "it was seen")
		req.Object.Status.Size = 3
	})))
	must(t, err)
	_, err = engine.Reconcile(t.Context(), thingRequest)
	must(t, err)
	same(t, "status.size", 3, w.thing().Status.Size)
	same(t, "recorders", []string{"things"}, mgr.recorders)
	if observed == 0 || own != observed {
		t.Errorf("the observer of the manager has seen %d events, that of the options %d", observed, own)
	}
	if _, err := step.FromManager[*Thing](nil, options); err == nil {
		t.Error("no manager is no error")
	}
}

// A fakeManager has what an engine takes from a manager.
type fakeManager struct {
	ctrl.Manager
	client    client.Client
	recorders []string
}

func (m *fakeManager) GetClient() client.Client    { return m.client }
func (m *fakeManager) GetAPIReader() client.Reader { return m.client }
func (m *fakeManager) GetCache() cache.Cache       { return nil }
func (m *fakeManager) Add(manager.Runnable) error  { return nil }

func (m *fakeManager) GetEventRecorder(name string) recorder.EventRecorder {
	m.recorders = append(m.recorders, name)
	return events.NewFakeRecorder(10)
}
