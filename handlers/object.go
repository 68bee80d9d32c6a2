// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// newOf returns an empty object of the kind of obj.
func newOf(obj client.Object) client.Object {
	o := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object) //nolint:errcheck // it has the type of obj
	o.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return o
}

// newListOf returns an empty list of objects of the kind of obj.
func newListOf(obj client.Object, scheme *runtime.Scheme) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	switch obj.(type) {
	case *unstructured.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	case *metav1.PartialObjectMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	list, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("the list of %T: %w: register it with the scheme of the manager", obj, err)
	}
	typed, ok := list.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list of objects", list)
	}
	return typed, nil
}
