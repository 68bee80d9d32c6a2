// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package players

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// objects is what is in the cluster, decoded when it is needed for the first time.
type objects struct {
	server *apiserver.Server
	scheme *runtime.Scheme
	kinds  map[reflect.Type]kind
	tables map[schema.GroupResource]map[client.ObjectKey]*entry
}

type kind struct {
	gvk        schema.GroupVersionKind
	resource   schema.GroupVersionResource
	namespaced bool
}

type entry struct {
	content map[string]any
	decoded client.Object
}

func newObjects(server *apiserver.Server, scheme *runtime.Scheme) *objects {
	return &objects{server: server, scheme: scheme, kinds: map[reflect.Type]kind{}, tables: map[schema.GroupResource]map[client.ObjectKey]*entry{}}
}

// kindOf returns the kind of the type of an object, which is in the scheme of the workload or built
// in.
func (o *objects) kindOf(obj client.Object) (kind, error) {
	t := reflect.TypeOf(obj)
	if k, ok := o.kinds[t]; ok {
		return k, nil
	}
	gvk, err := o.gvkOf(obj)
	if err != nil {
		return kind{}, err
	}
	resource, namespaced, err := o.server.ResourceFor(gvk)
	if err != nil {
		return kind{}, err
	}
	k := kind{gvk, resource, namespaced}
	o.kinds[t] = k
	return k, nil
}

// gvkOf returns the kind of the type of an object, which the server need not store.
func (o *objects) gvkOf(obj client.Object) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(obj, o.scheme)
	if err != nil {
		gvk, err = apiutil.GVKForObject(obj, clientgoscheme.Scheme)
	}
	if err != nil {
		return gvk, fmt.Errorf("%T is not in Workload.Scheme: %w", obj, err)
	}
	return gvk, nil
}

// changed takes a change over.
func (o *objects) changed(c apiserver.Change) {
	resource := c.Resource.GroupResource()
	table := o.tables[resource]
	if table == nil {
		table = map[client.ObjectKey]*entry{}
		o.tables[resource] = table
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
	if c.New == nil {
		delete(table, key)
		return
	}
	table[key] = &entry{content: c.New}
}

// get returns an object of the type of kind, or nil. It must not be changed.
func (o *objects) get(kind client.Object, key client.ObjectKey) client.Object {
	k, err := o.kindOf(kind)
	if err != nil {
		return nil // New has found it for the kinds of players
	}
	e := o.tables[k.resource.GroupResource()][key]
	if e == nil {
		return nil
	}
	return e.as(kind)
}

// list returns the objects of the type of kind in a namespace, or in all if it is empty, ordered.
func (o *objects) list(kind client.Object, namespace string) []client.Object {
	k, err := o.kindOf(kind)
	if err != nil {
		return nil
	}
	var list []client.Object
	for key, e := range o.tables[k.resource.GroupResource()] {
		if namespace != "" && key.Namespace != namespace {
			continue
		}
		if obj := e.as(kind); obj != nil {
			list = append(list, obj)
		}
	}
	slices.SortFunc(list, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list
}

// as returns the object decoded into the type of kind, or nil if it does not fit.
func (e *entry) as(kind client.Object) client.Object {
	if e.decoded == nil || reflect.TypeOf(e.decoded) != reflect.TypeOf(kind) {
		e.decoded = decode(e.content, kind)
	}
	if e.decoded == nil {
		return nil
	}
	return e.decoded
}

// decode returns the content of an object in the type of kind, or nil if it does not fit.
func decode(content map[string]any, kind client.Object) client.Object {
	obj := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return nil
	}
	return obj
}

// encode returns an object with its kind, which typed objects do not carry.
func encode(obj client.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	kind := obj.GetObjectKind()
	defer kind.SetGroupVersionKind(kind.GroupVersionKind())
	kind.SetGroupVersionKind(gvk)
	return json.Marshal(obj)
}
