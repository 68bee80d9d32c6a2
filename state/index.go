// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Index finds objects of type T in a cache by a text that is computed from each of them.
//
// The name identifies the computation: two indexes of one type with the same name are the same
// index. The names in generated code begin with "ctrlkit:", so that they do not collide with those
// of your own indexes.
type Index[T client.Object] struct {
	Name string
	// Values returns the texts by which an object is found, usually one. It must not change the
	// object.
	Values func(T) []string
}

// Register registers the index with the cache of indexer. It leaves an index that is registered
// already as it is: several managers of one process may need the same index.
func (i Index[T]) Register(ctx context.Context, indexer client.FieldIndexer, obj T) error {
	err := indexer.IndexField(ctx, obj, i.Name, func(obj client.Object) []string {
		if typed, ok := obj.(T); ok {
			return i.Values(typed)
		}
		return nil
	})
	if err == nil || isConflict(err) {
		return nil
	}
	return fmt.Errorf("registering the index %s of %T: %w", i.Name, obj, err)
}

// isConflict reports whether err says that an index of that name exists. client-go gives this error
// no type, so its text must do; TestRegisterTwice fails when the text changes.
func isConflict(err error) bool {
	return strings.Contains(err.Error(), "indexer conflict")
}

// Value returns the first text by which obj is found, "" if there is none.
func (i Index[T]) Value(obj T) string {
	if values := i.Values(obj); len(values) > 0 {
		return values[0]
	}
	return ""
}

// ControllerName returns the name of the owner that controls obj, if the owner is of this group and
// kind, in any version. It returns no name otherwise.
func ControllerName(obj client.Object, group, kind string) []string {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != kind {
		return nil
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != group {
		return nil
	}
	return []string{owner.Name}
}
