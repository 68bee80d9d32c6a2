// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Expected are children that a reconcile has written, until the cache has them.
//
// The cache of children is filled by another watch than that of their object. When the object
// arrives with our last write, its children need not be there: a step would not find what it has
// just created, and would create it again. So a reconcile waits for them, as it does for our write
// to the object.
type Expected struct {
	children []input
	since    Moment
}

// longestExpected is how long the next reconcile waits. It is short, because a child that another
// client has deleted in the meantime never arrives.
const longestExpected = 2 * time.Second

// Expect notes the children that a reconcile has written, if it has written any.
func (e *Expected) Expect(r *Record) {
	if children := r.Children(); len(children) > 0 {
		e.children, e.since = children, MomentOf(time.Now())
	}
}

// Forget drops all.
func (e *Expected) Forget() { e.children = nil }

// Stale reports whether the cache lacks a write to a child.
func (e *Expected) Stale(ctx context.Context, reader client.Reader, now time.Time) bool {
	if e.since.Since(now) > longestExpected {
		e.children = nil
	}
	for len(e.children) > 0 {
		if e.children[0].stale(ctx, reader) {
			return true
		}
		e.children = e.children[1:]
	}
	e.children = nil // and not the rest of what it was a part of
	return false
}

// stale reports whether a reader has neither this version nor a later one.
func (i *input) stale(ctx context.Context, reader client.Reader) bool {
	version, err := i.read(ctx, reader)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	order, err := resourceversion.CompareResourceVersion(version, i.version)
	return err == nil && order < 0
}

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

// NewOf returns a new object of the type of one.
func NewOf(t reflect.Type) client.Object {
	return reflect.New(t.Elem()).Interface().(client.Object) //nolint:errcheck // it is the type of one
}
