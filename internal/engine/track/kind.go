// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A kind is what empty objects are made of that are read into. There is one for each Go type and,
// for types that can stand for any kind, each kind: a program reads few of them.
type kind struct {
	t     reflect.Type
	item  reflect.Type            // of a list, the type of its objects; nil if that is not known
	gvk   schema.GroupVersionKind // of a type that can stand for any kind
	empty sync.Pool               // of objects; not for types that can stand for any kind
}

type kindKey struct {
	t   reflect.Type
	gvk schema.GroupVersionKind
}

var kinds sync.Map // of kindKey: *kind

// kindOf returns the kind of an object or a list.
func kindOf(obj runtime.Object) *kind {
	key := kindKey{t: reflect.TypeOf(obj)}
	if standsForAny(obj) {
		key.gvk = obj.GetObjectKind().GroupVersionKind()
	}
	if k, ok := kinds.Load(key); ok {
		return k.(*kind) //nolint:errcheck // nothing else is in the map
	}
	k, _ := kinds.LoadOrStore(key, &kind{t: key.t, item: typeOf(obj), gvk: key.gvk})
	return k.(*kind) //nolint:errcheck // nothing else is in the map
}

// newEmpty returns a new object or list.
func (k *kind) newEmpty() runtime.Object {
	empty := reflect.New(k.t.Elem()).Interface().(runtime.Object) //nolint:errcheck // it is the type of one
	if !k.gvk.Empty() {
		empty.GetObjectKind().SetGroupVersionKind(k.gvk)
	}
	return empty
}

// borrow returns an empty object, to be returned with giveBack. An idle operator would otherwise
// make thousands.
func (k *kind) borrow() client.Object {
	if obj, ok := k.empty.Get().(client.Object); ok {
		return obj
	}
	return k.newEmpty().(client.Object) //nolint:errcheck // it is no list
}

// giveBack empties an object that was borrowed, so that it keeps nothing of the cache alive.
func (k *kind) giveBack(obj client.Object) {
	if !k.gvk.Empty() {
		return
	}
	reflect.ValueOf(obj).Elem().SetZero()
	k.empty.Put(obj)
}
