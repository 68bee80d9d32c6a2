// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// List lists the objects of the kind of one.
func List(ctx context.Context, c client.Client, of client.Object, options ...client.ListOption) ([]client.Object, error) {
	kind, err := listKind(c, of)
	if err != nil {
		return nil, err
	}
	list, err := newList(c.Scheme(), of, kind)
	if err != nil {
		return nil, err
	}
	return listed(ctx, c, list, options)
}

// ListMetadata lists the metadata of the objects of the kind of one with a reader, such as the API
// server. The client knows the kind.
func ListMetadata(ctx context.Context, reader client.Reader, c client.Client, of client.Object, options ...client.ListOption) ([]client.Object, error) {
	kind, err := listKind(c, of)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	return listed(ctx, reader, list, options)
}

// listKind returns the kind of the lists of the kind of an object.
func listKind(c client.Client, of client.Object) (schema.GroupVersionKind, error) {
	gvk, err := c.GroupVersionKindFor(of)
	return gvk.GroupVersion().WithKind(gvk.Kind + "List"), err
}

func newList(scheme *runtime.Scheme, of client.Object, kind schema.GroupVersionKind) (client.ObjectList, error) {
	if _, ok := of.(*unstructured.Unstructured); ok {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	empty, err := scheme.New(kind)
	if err != nil {
		return nil, err
	}
	list, ok := empty.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", empty)
	}
	return list, nil
}

func listed(ctx context.Context, reader client.Reader, list client.ObjectList, options []client.ListOption) ([]client.Object, error) {
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, err
	}
	var all []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		all = append(all, obj)
		return nil
	})
	return all, err
}
