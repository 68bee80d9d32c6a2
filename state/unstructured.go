// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NewObject returns an empty object of a kind that has no Go type. The apiVersion is GROUP/VERSION,
// or the version of the core group.
func NewObject(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

// NewObjectList returns an empty list of objects of such a kind.
func NewObjectList(apiVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	return list
}

// Elements returns the elements of a list in obj. An element that is no object, such as a text, is the
// field with the empty name of what is returned for it.
func Elements(obj *unstructured.Unstructured, path ...string) []*unstructured.Unstructured {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	list, _ := value.([]any)
	var elements []*unstructured.Unstructured
	for _, item := range list {
		content, ok := item.(map[string]any)
		if !ok {
			content = map[string]any{"": item}
		}
		elements = append(elements, &unstructured.Unstructured{Object: content})
	}
	return elements
}

// Field returns the text of a field of obj: a text as it is, an integer in decimal, and true or
// false. It returns nil if the field is not set, or is null or of another type.
func Field(obj *unstructured.Unstructured, path ...string) *string {
	value, found, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if err != nil || !found {
		return nil
	}
	switch value := value.(type) {
	case string:
		return &value
	case int64:
		text := strconv.FormatInt(value, 10)
		return &text
	case bool:
		text := strconv.FormatBool(value)
		return &text
	}
	return nil
}
