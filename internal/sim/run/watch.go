// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// watcher merges the watches of many kinds into one stream of changes.
type watcher struct {
	cluster *cluster
	changes chan Change
	// reportError is called once for each kind that cannot be watched.
	reportError func(Kind, error)
}

// start watches events and those of kinds that the cluster serves, until ctx ends. It returns when
// the existing objects have been listed. running counts the goroutines that it starts.
func (w *watcher) start(ctx context.Context, kinds []Kind, running *sync.WaitGroup) error {
	var synced []cache.InformerSynced
	watch := func(informer cache.SharedIndexInformer, kind Kind, convert func(any) (Change, bool)) error {
		var once sync.Once
		err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			if ctx.Err() == nil {
				once.Do(func() { w.reportError(kind, err) })
			}
		})
		if err == nil {
			err = informer.SetTransform(slim)
		}
		var registration cache.ResourceEventHandlerRegistration
		if err == nil {
			registration, err = informer.AddEventHandler(w.handler(ctx, convert))
		}
		if err != nil {
			return fmt.Errorf("watching %s: %w", kind.Plural, err)
		}
		running.Go(func() { informer.RunWithContext(ctx) })
		synced = append(synced, registration.HasSynced)
		return nil
	}
	for _, kind := range kinds {
		mapping, err := w.cluster.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue // the cluster does not serve this kind, so there are no objects
		}
		if err != nil {
			return fmt.Errorf("looking for the resource of %s: %w", kind.Kind, err)
		}
		if err := watch(w.informer(mapping.Resource, kind.Sparse), kind, converter(kind)); err != nil {
			return err
		}
	}
	events := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Event"}, Plural: "events"}
	if err := watch(w.informer(schema.GroupVersionResource{Version: "v1", Resource: "events"}, false), events, eventChange); err != nil {
		return err
	}
	return waitForSync(ctx, synced)
}

// syncFor is how long the first lists may take. A kind that RBAC does not allow to list must not
// delay the others.
const syncFor = 10 * time.Second

func waitForSync(ctx context.Context, synced []cache.InformerSynced) error {
	limited, cancel := context.WithTimeout(ctx, syncFor)
	defer cancel()
	cache.WaitForCacheSync(limited.Done(), synced...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (w *watcher) informer(resource schema.GroupVersionResource, sparse bool) cache.SharedIndexInformer {
	if sparse {
		return metadatainformer.NewFilteredMetadataInformer(w.cluster.metadata, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	}
	return dynamicinformer.NewFilteredDynamicInformer(w.cluster.dynamic, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
}

func (w *watcher) handler(ctx context.Context, convert func(any) (Change, bool)) cache.ResourceEventHandler {
	send := func(obj any, initial, deleted bool) {
		change, ok := convert(obj)
		if !ok {
			return
		}
		change.Initial, change.Deleted = initial, deleted
		if deleted && change.Event != nil {
			return // the cluster removes events after an hour, but they did happen
		}
		select {
		case w.changes <- change:
		case <-ctx.Done():
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { send(obj, initial, false) },
		UpdateFunc: func(_, obj any) { send(obj, false, false) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			send(obj, false, true)
		},
	}
}

// slim removes the parts of an object that are large and never shown.
func slim(obj any) (any, error) {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
		if gvk := obj.GroupVersionKind(); gvk == (schema.GroupVersionKind{Version: "v1", Kind: "Pod"}) {
			for _, large := range []string{"containers", "initContainers", "volumes"} {
				unstructured.RemoveNestedField(obj.Object, "spec", large)
			}
		}
	case *metav1.PartialObjectMetadata:
		obj.ManagedFields = nil
	}
	return obj, nil
}

// converter returns a function that converts the objects of a kind, as informers deliver them, to
// changes.
func converter(kind Kind) func(any) (Change, bool) {
	return func(obj any) (Change, bool) {
		u, ok := obj.(*unstructured.Unstructured)
		if partial, isPartial := obj.(*metav1.PartialObjectMetadata); isPartial {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(partial)
			if err != nil {
				return Change{}, false
			}
			u, ok = &unstructured.Unstructured{Object: content}, true
			u.SetGroupVersionKind(kind.GroupVersionKind)
		}
		if !ok {
			return Change{}, false
		}
		return Change{Object: newObject(u, kind.Columns)}, true
	}
}

// eventChange reads a core/v1 Event.
func eventChange(obj any) (Change, bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return Change{}, false
	}
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(u.Object, path...)
		return value
	}
	event := &Event{
		UID:       u.GetUID(),
		Regarding: types.UID(text("involvedObject", "uid")),
		Kind:      oneLine(text("involvedObject", "kind")),
		Name:      oneLine(text("involvedObject", "name")),
		Warning:   text("type") == "Warning",
		Reason:    oneLine(text("reason")),
		Message:   oneLine(text("message")),
		Time:      u.GetCreationTimestamp().Time,
		Count:     1,
	}
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}} {
		if at, err := time.Parse(time.RFC3339, text(path...)); err == nil {
			event.Time = at
			break
		}
	}
	for _, path := range [][]string{{"series", "count"}, {"count"}} {
		if count, found, _ := unstructured.NestedInt64(u.Object, path...); found {
			event.Count = count
			break
		}
	}
	return Change{Event: event}, true
}
