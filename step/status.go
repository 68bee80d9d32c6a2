// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copyStatus gives to the status of from. It is not copied deeply.
func copyStatus(to, from client.Object) {
	if u, ok := to.(*unstructured.Unstructured); ok {
		if status, is := from.(*unstructured.Unstructured).Object["status"]; is { //nolint:errcheck // both are of one type
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
		return
	}
	if v := reflect.ValueOf(to).Elem().FieldByName("Status"); v.IsValid() {
		v.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
	}
}

// ensureStatus makes a status if it is a nil pointer, so that steps can set its fields.
func ensureStatus(obj client.Object) {
	if v := reflect.ValueOf(obj).Elem().FieldByName("Status"); v.Kind() == reflect.Pointer && v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
}

// hasStatus reports whether obj has a status that is not empty, or none that can be examined.
func hasStatus(obj client.Object) bool {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object["status"] != nil
	}
	v := reflect.ValueOf(obj).Elem().FieldByName("Status")
	return !v.IsValid() || !v.IsZero()
}

// hasStatusField reports whether objects of the type may have a status.
func hasStatusField(obj client.Object) bool {
	_, anything := obj.(*unstructured.Unstructured)
	return anything || reflect.ValueOf(obj).Elem().FieldByName("Status").IsValid()
}

// statusType knows where a type keeps the generation that its status is about.
type statusType struct{ observedGeneration []int }

func statusTypeOf(obj any) statusType {
	status, ok := reflect.TypeOf(obj).Elem().FieldByName("Status")
	if !ok {
		return statusType{}
	}
	of := status.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return statusType{}
	}
	field, ok := of.FieldByName("ObservedGeneration")
	if !ok || field.Type.Kind() != reflect.Int64 {
		return statusType{}
	}
	return statusType{append(append([]int{}, status.Index...), field.Index...)}
}

// observe sets the generation that the status is about, if the type has a field for it. A field
// behind a nil pointer can't be set.
func (s statusType) observe(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if status, _ := u.Object["status"].(map[string]any); status["observedGeneration"] != nil { // else it may be no field
			status["observedGeneration"] = obj.GetGeneration()
		}
		return
	}
	if s.observedGeneration == nil {
		return
	}
	if field, err := reflect.ValueOf(obj).Elem().FieldByIndexErr(s.observedGeneration); err == nil && field.CanSet() {
		field.SetInt(obj.GetGeneration())
	}
}
