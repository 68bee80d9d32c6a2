// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// CacheOnly limits the cache of a ctrl.Manager, for the kind of obj, to the objects that the
// selections name: it lists and watches each of them by its name. That is all that a role with
// their resourceNames allows. Call it before the ctrl.Manager is made.
//
//   - The limit is one of the process: to everything that reads the kind from this cache, other
//     objects do not exist. Read them with the APIReader of the ctrl.Manager, or do not call
//     CacheOnly, and write a role for all objects of the kind.
//   - Each selection has a Name, and a Namespace if the kind is namespaced. Its other fields are
//     ignored.
//   - Several calls add up. A cache has one object of a namespace or all: it is an error if the
//     options name another object of the same namespace, or limit the kind in another way.
func CacheOnly(options *manager.Options, obj client.Object, selections ...Selection) error {
	if options.Cache.ByObject == nil {
		options.Cache.ByObject = map[client.Object]cache.ByObject{}
	}
	for _, s := range selections {
		if err := s.checkName(); err != nil {
			return fmt.Errorf("limiting the cache of %T: %w", obj, err)
		}
		key, limit := obj, cache.ByObject{}
		for other, existing := range options.Cache.ByObject {
			if reflect.TypeOf(other) == reflect.TypeOf(obj) && unstructuredKind(other) == unstructuredKind(obj) {
				key, limit = other, existing
			}
		}
		if err := limitTo(&limit, s, key != obj); err != nil {
			return fmt.Errorf("limiting the cache of %T to %s: %w", obj, nameOf(client.ObjectKey{Namespace: s.Namespace, Name: s.Name}), err)
		}
		options.Cache.ByObject[key] = limit
	}
	return nil
}

// CacheUnstructured makes the client of a ctrl.Manager read unstructured objects from the cache, as
// it does with all others. Call it before the ctrl.Manager is made.
//
// It counts for the whole process: each kind that is read in this way is then listed and watched.
func CacheUnstructured(options *manager.Options) {
	if options.Client.Cache == nil {
		options.Client.Cache = &client.CacheOptions{}
	}
	options.Client.Cache.Unstructured = true
}

// unstructuredKind returns the kind of an unstructured object, which its Go type does not say.
func unstructuredKind(obj client.Object) schema.GroupVersionKind {
	if _, ok := obj.(runtime.Unstructured); ok {
		return obj.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{}
}

// limitTo adds the object that s names to a limit, which may exist already.
func limitTo(limit *cache.ByObject, s Selection, exists bool) error {
	field := fields.OneTermEqualSelector("metadata.name", s.Name)
	present := limit.Field
	if s.Namespace != "" {
		config, ok := limit.Namespaces[s.Namespace]
		present, exists = config.FieldSelector, ok || exists && len(limit.Namespaces) == 0
	}
	if exists && (present == nil || present.String() != field.String()) {
		return fmt.Errorf("the options of the cache have %s for it: one cache cannot have both, so use a role for all objects of the kind, and no limit",
			describeField(present))
	}
	if s.Namespace == "" {
		limit.Field = field
		return nil
	}
	if limit.Namespaces == nil {
		limit.Namespaces = map[string]cache.Config{}
	}
	config := limit.Namespaces[s.Namespace]
	config.FieldSelector = field
	limit.Namespaces[s.Namespace] = config
	return nil
}

func describeField(selector fields.Selector) string {
	if selector == nil || selector.Empty() {
		return "all objects"
	}
	return selector.String()
}
