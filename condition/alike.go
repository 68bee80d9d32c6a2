// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	conditionType  = reflect.TypeFor[metav1.Condition]()
	conditionsType = reflect.TypeFor[[]metav1.Condition]()
)

// isAlike reports whether t is a slice of structs that have the fields of metav1.Condition, of
// types that convert without a loss, and no others: what a field besides them means is not known
// here.
func isAlike(t reflect.Type) bool {
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct || t.Elem().NumField() != conditionType.NumField() {
		return false
	}
	for i := range conditionType.NumField() {
		want := conditionType.Field(i)
		field, ok := t.Elem().FieldByName(want.Name)
		if !ok || len(field.Index) > 1 || field.Type.Kind() != want.Type.Kind() || !field.Type.ConvertibleTo(want.Type) {
			return false
		}
	}
	return true
}

// fromAlike returns a copy of a list for which isAlike holds.
func fromAlike(list reflect.Value) []metav1.Condition {
	if list.IsNil() {
		return nil
	}
	all := make([]metav1.Condition, list.Len())
	for i := range all {
		convertFields(reflect.ValueOf(&all[i]).Elem(), list.Index(i))
	}
	return all
}

// toAlike returns conditions as a list of a type for which isAlike holds.
func toAlike(conditions []metav1.Condition, t reflect.Type) reflect.Value {
	if conditions == nil {
		return reflect.Zero(t)
	}
	list := reflect.MakeSlice(t, len(conditions), len(conditions))
	for i := range conditions {
		convertFields(list.Index(i), reflect.ValueOf(conditions[i]))
	}
	return list
}

func convertFields(to, from reflect.Value) {
	for i := range conditionType.NumField() {
		name := conditionType.Field(i).Name
		field := to.FieldByName(name)
		field.Set(from.FieldByName(name).Convert(field.Type()))
	}
}
