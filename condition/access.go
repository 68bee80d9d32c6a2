// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Accessor gets and sets the conditions of an object. A type with a field Status.Conditions of
// type []metav1.Condition, as kubebuilder writes it, needs no methods: [Of] and [Store] find the
// field, also in embedded structs, but not through pointers.
type Accessor interface {
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// ErrNone is the error about a type that has no conditions.
var ErrNone = errors.New("no conditions")

// Of returns the conditions of an object, which must be a pointer to a struct or an [Accessor].
// They are the object's own: copy them before changing them. The error is [ErrNone], with a remedy.
func Of(obj any) ([]metav1.Condition, error) {
	if o, ok := obj.(Accessor); ok {
		return o.GetConditions(), nil
	}
	field, err := fieldOf(obj)
	if err != nil {
		return nil, err
	}
	return field.Interface().([]metav1.Condition), nil //nolint:errcheck // fieldOf has checked the type
}

// Store gives an object its conditions.
func Store(obj any, conditions []metav1.Condition) error {
	if o, ok := obj.(Accessor); ok {
		o.SetConditions(conditions)
		return nil
	}
	field, err := fieldOf(obj)
	if err != nil {
		return err
	}
	field.Set(reflect.ValueOf(conditions))
	return nil
}

// fields caches, for each type of struct, the index of Status.Conditions, nil if it has none.
var fields sync.Map // reflect.Type to []int

func fieldOf(obj any) (reflect.Value, error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("%T: %w: it is not a pointer to a struct", obj, ErrNone)
	}
	t := v.Elem().Type()
	index, ok := fields.Load(t)
	if !ok {
		index, _ = fields.LoadOrStore(t, indexOf(t))
	}
	path := index.([]int) //nolint:errcheck // nothing else is stored
	if path == nil {
		return reflect.Value{}, fmt.Errorf("%T: %w: it needs a field Status.Conditions []metav1.Condition, "+
			"or the methods GetConditions and SetConditions", obj, ErrNone)
	}
	return v.Elem().FieldByIndex(path), nil
}

func indexOf(t reflect.Type) []int {
	status, ok := t.FieldByName("Status")
	if !ok || status.Type.Kind() != reflect.Struct || throughPointer(t, status.Index) {
		return nil
	}
	conditions, ok := status.Type.FieldByName("Conditions")
	if !ok || conditions.Type != reflect.TypeFor[[]metav1.Condition]() || throughPointer(status.Type, conditions.Index) {
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
