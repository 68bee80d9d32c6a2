// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A cache of children is filled by another watch than that of their object. When the object comes
// back with what we have written to it, its children need not have: a step would not find what it
// has just created, and create it again. So a reconcile waits for them, as it does for our write to
// the object.

// longestChildrenBehind is how long. It is short, because a child that somebody else has deleted in
// the meantime never comes.
const longestChildrenBehind = 2 * time.Second

// typeOf returns the type of the objects that are cached when obj, an object or a list, is read;
// nil for those of which this is not known.
func typeOf(obj runtime.Object) reflect.Type {
	if standsForAny(obj) {
		return nil
	}
	t := reflect.TypeOf(obj)
	if _, ok := obj.(client.ObjectList); !ok {
		return t
	}
	items, ok := t.Elem().FieldByName("Items")
	if !ok || items.Type.Kind() != reflect.Slice || items.Type.Elem().Kind() != reflect.Struct {
		return nil
	}
	return reflect.PointerTo(items.Type.Elem())
}

// noteRead remembers that there is a cache for a type: to look into one that there is not would
// make it.
func (c *core) noteRead(obj runtime.Object) {
	if t := typeOf(obj); t != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.cached == nil {
			c.cached = make(map[reflect.Type]bool)
		}
		c.cached[t] = true
	}
}

// noteChild remembers what the cache is to come to know.
func (c *core) noteChild(t reflect.Type, key client.ObjectKey, version string) {
	if c.own != nil || version == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached[t] {
		c.children = append(c.children, input{empty: newOf(t), key: key, version: version})
	}
}

// newOf returns a new object of the type of one.
func newOf(t reflect.Type) client.Object {
	return reflect.New(t.Elem()).Interface().(client.Object) //nolint:errcheck // it is the type of one
}

// expectChildren remembers for the next reconcile what this one has written besides its object.
func (r *run[T]) expectChildren() {
	if r.core == nil {
		return
	}
	r.core.mu.Lock()
	defer r.core.mu.Unlock()
	if len(r.core.children) > 0 {
		r.memory.children, r.memory.childrenAt = r.core.children, time.Now()
	}
}

// childrenBehind says whether the cache does not know what was written to children.
func (m *memory[T]) childrenBehind(ctx context.Context, reader client.Reader, now time.Time) bool {
	if now.Sub(m.childrenAt) > longestChildrenBehind {
		m.children = nil
	}
	for len(m.children) > 0 {
		if m.children[0].behind(ctx, reader) {
			return true
		}
		m.children = m.children[1:]
	}
	return false
}

// behind says whether a reader does not give this version, or a later one.
func (i *input) behind(ctx context.Context, reader client.Reader) bool {
	version, err := i.read(ctx, reader)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	order, err := resourceversion.CompareResourceVersion(version, i.version)
	return err == nil && order < 0
}
