// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
)

// A kindClass says what manages the objects of a kind, and whether they have conditions.
type kindClass int

const (
	custom  kindClass = iota // an operator manages them
	builtin                  // Kubernetes does, and they have conditions
	bare                     // Kubernetes does, and they have none: a Secret, a ConfigMap, a Role
)

// kindOf returns the class of the kind of an object.
func kindOf(obj *unstructured.Unstructured) kindClass {
	typed, err := scheme.Scheme.New(obj.GroupVersionKind())
	if err != nil {
		return custom
	}
	status := reflect.TypeOf(typed).Elem()
	if field, ok := status.FieldByName("Status"); ok && field.Type.Kind() == reflect.Struct {
		if _, ok := field.Type.FieldByName("Conditions"); ok {
			return builtin
		}
	}
	return bare
}
