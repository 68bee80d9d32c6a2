// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"bytes"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TakeOver returns a JSON patch that makes a manager which applies the only one that has some fields
// of an object, as csaupgrade does for all fields of other managers. If the manager then applies
// content without these fields, the API server removes them, in the same write as it sets the rest:
// a null in the content would not remove a field that has others below it.
//
// It returns nil if nothing would change. Others says whether another manager had one of the fields;
// no manager has what is a default.
func TakeOver(obj client.Object, apiVersion, manager string, fields []fieldpath.Path) (patch []byte, others bool, err error) {
	taken := fieldpath.NewSet(fields...)
	entries := slices.Clone(obj.GetManagedFields())
	ours := -1
	for i := range entries {
		entry := &entries[i]
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var set fieldpath.Set
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return nil, false, err
		}
		rest := set.RecursiveDifference(taken)
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			ours, rest = i, set.Union(taken)
		} else if !rest.Equals(&set) {
			others = true
		}
		if rest.Equals(&set) {
			continue
		}
		if entry.FieldsV1, err = fieldsOf(rest); err != nil {
			return nil, false, err
		}
	}
	if ours < 0 {
		set, err := fieldsOf(taken)
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1", FieldsV1: set,
		})
	}
	if slices.EqualFunc(entries, obj.GetManagedFields(), func(a, b metav1.ManagedFieldsEntry) bool { return a.FieldsV1 == b.FieldsV1 }) {
		return nil, others, nil
	}
	entries = slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1 != nil && e.FieldsV1.GetRawString() == "{}" })
	patch, err = json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": obj.GetResourceVersion()},
	})
	return patch, others, err
}

func fieldsOf(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	data, err := set.ToJSON()
	return metav1.NewFieldsV1(string(data)), err
}
