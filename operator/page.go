// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/journal"
)

// servePage serves the page, and returns the observer that it needs.
func servePage(mgr manager.Manager, ring *journal.Ring) (journal.Observer, error) {
	activity := view.NewActivity()
	done := make(chan struct{})
	server := view.New(view.Options{
		Name: filepath.Base(os.Args[0]), Activity: activity, Objects: &pageObjects{mgr, activity},
		Entries: ring.Entries, Known: ring.Objects, Queues: queues, Elected: func() bool { return elected(mgr) }, Done: done,
	})
	if err := localhost.Serve(mgr, view.Path, server); err != nil {
		return nil, err
	}
	return activity, mgr.Add(ending(done))
}

// ending closes a channel when the manager ends: a metrics server waits for open requests.
type ending chan struct{}

func (e ending) Start(ctx context.Context) error {
	<-ctx.Done()
	close(e)
	return nil
}

func (ending) NeedLeaderElection() bool { return false }

func elected(mgr manager.Manager) bool {
	select {
	case <-mgr.Elected():
		return true
	default:
		return false
	}
}

// queues returns the lengths of the queues by their names, from the metrics of controller-runtime.
func queues() map[string]int {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil && len(families) == 0 {
		return nil
	}
	lengths := map[string]int{}
	for _, family := range families {
		if family.GetName() != "workqueue_depth" {
			continue
		}
		for _, m := range family.GetMetric() {
			lengths[label(m, "name")] += int(m.GetGauge().GetValue())
		}
	}
	return lengths
}

func label(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// pageObjects are the objects in the cache of a manager.
type pageObjects struct {
	mgr      manager.Manager
	activity *view.Activity
}

// Kinds implements [view.Objects].
func (p *pageObjects) Kinds() []schema.GroupKind { return p.activity.Kinds() }

// Follow implements [view.Objects].
func (p *pageObjects) Follow(kind schema.GroupKind, handler func(schema.GroupVersionKind) toolscache.ResourceEventHandler) (
	stop func(), synced func() bool, err error,
) {
	obj, gvk, _, err := p.object(kind)
	if err != nil {
		return nil, nil, err
	}
	informer, err := p.mgr.GetCache().GetInformer(context.Background(), obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, fmt.Errorf("the cache of %s: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(handler(gvk))
	if err != nil {
		return nil, nil, fmt.Errorf("the cache of %s: %w", kind, err)
	}
	return func() { _ = informer.RemoveEventHandler(registration) }, registration.HasSynced, nil
}

// object returns an empty object of a kind as the cache has it, and how kubectl calls the kind.
func (p *pageObjects) object(kind schema.GroupKind) (client.Object, schema.GroupVersionKind, string, error) {
	mapping, err := p.mgr.GetRESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, schema.GroupVersionKind{}, "", fmt.Errorf("finding the version of %s: %w", kind, err)
	}
	resource := mapping.Resource.GroupResource().String()
	gvk := mapping.GroupVersionKind
	for _, version := range append([]schema.GroupVersion{gvk.GroupVersion()}, p.mgr.GetScheme().PrioritizedVersionsForGroup(kind.Group)...) {
		typed, err := p.mgr.GetScheme().New(version.WithKind(kind.Kind))
		if obj, ok := typed.(client.Object); err == nil && ok {
			return obj, version.WithKind(kind.Kind), resource, nil
		}
	}
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(gvk)
	return untyped, gvk, resource, nil
}

// Get implements [view.Objects].
func (p *pageObjects) Get(ctx context.Context, o journal.Object) (*unstructured.Unstructured, string, error) {
	kind := schema.GroupKind{Group: o.Group, Kind: o.Kind}
	known := false
	for _, k := range p.activity.Kinds() {
		known = known || k == kind
	}
	if !known { // reading it would start a watch
		return nil, "", errors.New("this operator does not reconcile objects of the kind " + kind.String())
	}
	obj, gvk, resource, err := p.object(kind)
	if err != nil {
		return nil, "", err
	}
	if err := p.mgr.GetCache().Get(ctx, o.Key(), obj); apierrors.IsNotFound(err) {
		return nil, resource, nil
	} else if err != nil {
		return nil, resource, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, resource, fmt.Errorf("reading %s: %w", o, err)
	}
	untyped := &unstructured.Unstructured{Object: content}
	untyped.SetGroupVersionKind(gvk)
	return untyped, resource, nil
}
