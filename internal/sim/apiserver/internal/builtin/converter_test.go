// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Schemas are the same after they were encoded and decoded.
func TestDecodeSchemas(t *testing.T) {
	t.Cleanup(func() { decoded.Store(nil) })
	data, err := EncodeSchemas()
	if err != nil {
		t.Fatal(err)
	}
	if err := DecodeSchemas(data); err != nil {
		t.Fatal(err)
	}
	pod, err := TypeConverter().ObjectToTyped(&unstructured.Unstructured{Object: Empty(corev1.SchemeGroupVersion.WithKind("Pod"))})
	if err != nil {
		t.Fatal(err)
	}
	want, got := pod.Schema().Types, decoded.Load().Schema.Types
	if len(want) < 500 || len(want) != len(got) {
		t.Fatalf("%d of %d schemas are left", len(got), len(want))
	}
	got = append(got[:0:0], got...)
	for i := range want {
		if !same(reflect.ValueOf(want[i]), reflect.ValueOf(got[i])) {
			t.Errorf("%s has become %+v", want[i].Name, got[i])
		}
	}
}

// same compares exported fields: others are tables that are made at the first use.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return same(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() && !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return a.Type() == b.Type()
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Type() == b.Type() && reflect.DeepEqual(a.Interface(), b.Interface())
}
