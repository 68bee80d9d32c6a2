// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// TypeConverter returns the schemas of the built-in kinds in the form that server-side apply uses.
func TypeConverter() managedfields.TypeConverter { return typeConverter() }

var typeConverter = sync.OnceValue(func() managedfields.TypeConverter {
	if parser := decoded.Load(); parser != nil {
		return managedfields.NewSchemeTypeConverter(types(), parser)
	}
	return applyconfigurations.NewTypeConverter(types())
})

// decoded has the schemas that another process has read, if there is one.
var decoded atomic.Pointer[typed.Parser]

func init() { gob.Register(map[any]any{}) } // values of fields that are objects, as YAML has them

// EncodeSchemas returns the schemas of [TypeConverter] for [DecodeSchemas].
func EncodeSchemas() ([]byte, error) {
	object, err := TypeConverter().ObjectToTyped(&unstructured.Unstructured{Object: Empty(corev1.SchemeGroupVersion.WithKind("Namespace"))})
	if err != nil {
		return nil, fmt.Errorf("looking for the schemas of the built-in kinds: %w", err)
	}
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(object.Schema().Types); err != nil {
		return nil, fmt.Errorf("encoding the schemas of the built-in kinds: %w", err)
	}
	return data.Bytes(), nil
}

// DecodeSchemas lets [TypeConverter] take schemas from another process of the same program. It has no
// effect after the first use of TypeConverter, which otherwise reads and checks client-go's YAML.
func DecodeSchemas(data []byte) error {
	var list []schema.TypeDef
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&list); err != nil {
		return fmt.Errorf("decoding the schemas of the built-in kinds: %w", err)
	}
	decoded.Store(&typed.Parser{Schema: schema.Schema{Types: list}})
	return nil
}
