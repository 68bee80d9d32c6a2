// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
)

// caches are the objects in the informers of one process, each with a copy of what it was when it
// came. Readers of a cache share its objects, so that none may change one in place. Clients of
// controller-runtime copy what they return; event handlers, predicates, functions that map events
// to requests, and indexers get the object itself.
//
// client-go has a detector for that, too. It prints, and ends the process, at a time of its own.
type caches struct {
	mu        sync.Mutex
	informers []*informer
	handled   func(of runtime.Object) // is called for a kind whose events are handled; may be nil
	objects   map[*informer]map[string]cached
	altered   map[string]string // how objects were changed, by object
}

// cached is an object of a cache, and what it was when it came.
type cached struct{ obj, copied runtime.Object }

func newCaches() *caches {
	return &caches{objects: map[*informer]map[string]cached{}, altered: map[string]string{}}
}

// informer is one that shows the caches what it is about to store.
type informer struct {
	toolscache.SharedIndexInformer
	of     runtime.Object // an empty one
	kind   string
	caches *caches
}

// newInformer returns an informer that is watched, for [cache.Options].
func (c *caches) newInformer(lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	kind := of.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.Indirect(reflect.ValueOf(of)).Type().Name()
	}
	i := &informer{toolscache.NewSharedIndexInformer(lw, of, resync, indexers), of, kind, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.informers = append(c.informers, i)
	return i
}

// haveSynced reports whether all informers have what was in the cluster when they began.
func (c *caches) haveSynced() bool {
	c.mu.Lock()
	informers := slices.Clone(c.informers)
	c.mu.Unlock()
	return !slices.ContainsFunc(informers, func(i *informer) bool { return !i.HasSynced() })
}

// AddEventHandler notes that the kind is watched.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.noteHandler()
	return i.SharedIndexInformer.AddEventHandler(h)
}

// AddEventHandlerWithResyncPeriod notes that the kind is watched.
func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	i.noteHandler()
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(h, period)
}

// AddEventHandlerWithOptions notes that the kind is watched.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.noteHandler()
	return i.SharedIndexInformer.AddEventHandlerWithOptions(h, options)
}

func (i *informer) noteHandler() {
	if i.caches.handled != nil {
		i.caches.handled(i.of)
	}
}

// SetTransform lets the object be noted after it was transformed: from then on it is shared.
func (i *informer) SetTransform(transform toolscache.TransformFunc) error {
	return i.SharedIndexInformer.SetTransform(func(in any) (any, error) {
		out := in
		if transform != nil {
			var err error
			if out, err = transform(in); err != nil {
				return nil, err
			}
		}
		if obj, ok := out.(runtime.Object); ok {
			i.caches.note(i, obj)
		}
		return out, nil
	})
}

// note copies an object that comes into a cache. The one that it replaces is looked at once more.
func (c *caches) note(i *informer, obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	key := accessor.GetNamespace() + "/" + accessor.GetName()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[i] == nil {
		c.objects[i] = map[string]cached{}
	}
	if before, ok := c.objects[i][key]; ok {
		c.compare(i.kind+" "+key, before)
	}
	c.objects[i][key] = cached{obj, obj.DeepCopyObject()}
}

// changed returns how objects were changed in place so far, ordered by object.
func (c *caches) changed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, objects := range c.objects {
		for key, object := range objects {
			c.compare(i.kind+" "+key, object)
		}
	}
	var list []string
	for _, of := range slices.Sorted(maps.Keys(c.altered)) {
		list = append(list, c.altered[of])
	}
	return list
}

func (c *caches) compare(of string, object cached) {
	if _, known := c.altered[of]; known || apiequality.Semantic.DeepEqual(object.obj, object.copied) {
		return
	}
	world := func(o runtime.Object) snapshot.Snapshot { return snapshot.Snapshot{of: snapshot.Fields(contentOf(o))} }
	var lines []string
	for _, d := range world(object.copied).Diff(world(object.obj), nil) {
		lines = append(lines, fmt.Sprintf("%s: %q became %q", strings.TrimPrefix(d.Path, "."), d.Want, d.Got))
	}
	if len(lines) > 0 {
		c.altered[of] = of + ": " + strings.Join(lines, ", ")
	}
}

// contentOf returns an object as JSON has it.
func contentOf(obj runtime.Object) map[string]any {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil
	}
	return content
}
