// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
)

// Classes of kinds differ in who looks after its objects, and in whether these say how they are.
type kindClass int

const (
	custom  kindClass = iota // an operator does
	builtin                  // Kubernetes does
	bare                     // of Kubernetes, without conditions: a Secret, a ConfigMap, a Role
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
