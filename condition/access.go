// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// An Accessor gets and sets the conditions of an object. A type with a field Status.Conditions of
// type []metav1.Condition, as kubebuilder writes it, needs no methods: [Of] and [Store] find the
// field, also in embedded structs and if Status is a pointer, but not through other pointers. A
// field of another element type that has exactly the fields of metav1.Condition, such as that of
// Crossplane, is converted.
type Accessor interface {
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// ErrNone is the error about a type that has no conditions.
var ErrNone = errors.New("no conditions")

// Of returns the conditions of an object, which must be a pointer to a struct or an [Accessor]; of an
// *unstructured.Unstructured, those in status.conditions. They may be the object's own: copy them
// before changing them. The error is [ErrNone], with a remedy, or that of conditions that can't be
// read.
func Of(obj any) ([]metav1.Condition, error) {
	switch o := obj.(type) {
	case Accessor:
		return o.GetConditions(), nil
	case *unstructured.Unstructured:
		return ofContent(o.Object)
	}
	path, err := pathOf(obj)
	if err != nil {
		return nil, err
	}
	field, err := reflect.ValueOf(obj).Elem().FieldByIndexErr(path)
	if err != nil {
		return nil, nil //nolint:nilerr // the status is a nil pointer: there are none yet
	}
	if all, ok := field.Interface().([]metav1.Condition); ok {
		return all, nil
	}
	return fromAlike(field), nil
}

// Store gives an object its conditions.
func Store(obj any, conditions []metav1.Condition) error {
	switch o := obj.(type) {
	case Accessor:
		o.SetConditions(conditions)
		return nil
	case *unstructured.Unstructured:
		return storeContent(o, conditions)
	}
	path, err := pathOf(obj)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(obj).Elem()
	for _, i := range path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && len(conditions) == 0 {
				return nil
			} else if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if v.Type() == conditionsType {
		v.Set(reflect.ValueOf(conditions))
		return nil
	}
	v.Set(toAlike(conditions, v.Type()))
	return nil
}

// ofContent returns the conditions of an object without a Go type.
func ofContent(object map[string]any) ([]metav1.Condition, error) {
	status, _ := object["status"].(map[string]any)
	items, _ := status["conditions"].([]any)
	var all []metav1.Condition
	for _, item := range items {
		var c metav1.Condition
		content, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("a condition in status.conditions is %v", item)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &c); err != nil {
			return nil, fmt.Errorf("reading status.conditions: %w", err)
		}
		all = append(all, c)
	}
	return all, nil
}

// storeContent gives an object without a Go type its conditions.
func storeContent(obj *unstructured.Unstructured, conditions []metav1.Condition) error {
	if len(conditions) == 0 {
		unstructured.RemoveNestedField(obj.Object, "status", "conditions")
		return nil
	}
	items := make([]any, len(conditions))
	for i := range conditions {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return fmt.Errorf("condition %s: %w", conditions[i].Type, err)
		}
		items[i] = content
	}
	if obj.Object == nil {
		obj.Object = make(map[string]any)
	}
	return unstructured.SetNestedSlice(obj.Object, items, "status", "conditions")
}

// fields caches, for each type of struct, the index of Status.Conditions, nil if it has none.
var fields sync.Map // reflect.Type to []int

// pathOf returns the index of the conditions of an object. On the way, only the status may be a pointer.
func pathOf(obj any) ([]int, error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T: %w: it is not a pointer to a struct", obj, ErrNone)
	}
	t := v.Elem().Type()
	index, ok := fields.Load(t)
	if !ok {
		index, _ = fields.LoadOrStore(t, indexOf(t))
	}
	path := index.([]int) //nolint:errcheck // nothing else is stored
	if path == nil {
		return nil, fmt.Errorf("%T: %w: it needs a field Status.Conditions []metav1.Condition, "+
			"or the methods GetConditions and SetConditions", obj, ErrNone)
	}
	return path, nil
}

func indexOf(t reflect.Type) []int {
	status, ok := t.FieldByName("Status")
	if !ok || throughPointer(t, status.Index) {
		return nil
	}
	of := status.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	conditions, ok := of.FieldByName("Conditions")
	if !ok || conditions.Type != conditionsType && !isAlike(conditions.Type) || throughPointer(of, conditions.Index) {
		return nil
	}
	return append(append([]int{}, status.Index...), conditions.Index...)
}

// throughPointer reports whether a field belongs to an embedded pointer, which may be nil.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}
