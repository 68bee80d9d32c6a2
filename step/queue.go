// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/config"
)

// prioritizedBy returns UsePriorityQueue of the manager of a builder. The builder does not say which
// manager it has, and the fields of both are only read here: it is not known if they are not found.
func prioritizedBy(b *builder.Builder) (prioritized *bool, known bool) {
	mgr := reflect.ValueOf(b).Elem().FieldByName("mgr")
	for mgr.Kind() == reflect.Interface || mgr.Kind() == reflect.Pointer {
		mgr = mgr.Elem()
	}
	if mgr.Kind() != reflect.Struct {
		return nil, false
	}
	of := mgr.FieldByName("controllerConfig")
	if !of.IsValid() || of.Type() != reflect.TypeFor[config.Controller]() {
		return nil, false
	}
	if is := of.FieldByName("UsePriorityQueue"); !is.IsNil() {
		return new(is.Elem().Bool()), true
	}
	return nil, true
}
