// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
)

// CacheTransform is that of package apply. It keeps what [Covers] needs, whichever manager asks.
func CacheTransform() toolscache.TransformFunc {
	t := &transform{known: make(map[string][]metav1.ManagedFieldsEntry), texts: make(map[string]string), family: newFamily()}
	return func(obj any) (any, error) {
		switch obj := obj.(type) {
		case *unstructured.Unstructured:
			t.slimUnstructured(obj)
		case metav1.ObjectMetaAccessor:
			t.slim(obj.GetObjectMeta())
			t.shareTexts(obj.GetObjectMeta())
			t.shareConditions(obj)
		}
		return obj, nil
	}
}

// mostKnown is how many different entries are shared. There is one for each shape of a child, such
// as a Deployment with two containers.
const mostKnown = 4096

type transform struct {
	mu    sync.Mutex // guards what follows
	known map[string][]metav1.ManagedFieldsEntry
	key   []byte            // of the last entry, to be used again
	texts map[string]string // those that objects share, by themselves
	keys  []string          // of the last map, to be used again

	family family
}

// mostTexts is how many texts are shared.
const mostTexts = 4096

// shareTexts replaces texts of an object by equal ones that other objects have. A decoder allocates
// each anew.
func (t *transform) shareTexts(obj metav1.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	obj.SetNamespace(t.text(obj.GetNamespace()))
	t.shareKeys(obj.GetAnnotations())
	for i, finalizer := range obj.GetFinalizers() {
		obj.GetFinalizers()[i] = t.text(finalizer)
	}
	if labels := obj.GetLabels(); len(labels) > 0 {
		obj.SetLabels(t.family.labelsLike(labels, t.text))
	}
	if owners := obj.GetOwnerReferences(); len(owners) > 0 {
		obj.SetOwnerReferences(t.family.ownersLike(owners, t.text))
	}
}

// shareConditions replaces the texts of the conditions of an object, of which most are those of its kind,
// and lets the list end at its last element: a decoder reserves up to as much again.
func (t *transform) shareConditions(obj any) {
	list := conditionsIn(obj)
	if list == nil || len(*list) == 0 {
		return
	}
	conditions := slices.Clone(*list)
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status = t.text(c.Type), metav1.ConditionStatus(t.text(string(c.Status)))
		c.Reason, c.Message = t.text(c.Reason), t.text(c.Message)
	}
	*list = conditions
}

// conditionsIn returns the field Status.Conditions of an object, nil if it has none of that type.
func conditionsIn(obj any) *[]metav1.Condition {
	v := reflect.Indirect(reflect.ValueOf(obj))
	for _, name := range []string{"Status", "Conditions"} {
		if v.Kind() != reflect.Struct {
			return nil
		}
		field, ok := v.Type().FieldByName(name)
		if !ok {
			return nil
		}
		in, err := v.FieldByIndexErr(field.Index)
		if err != nil { // of an embedded pointer that is nil
			return nil
		}
		v = reflect.Indirect(in)
	}
	if !v.CanAddr() {
		return nil
	}
	list, _ := v.Addr().Interface().(*[]metav1.Condition)
	return list
}

// shareKeys replaces the keys of a map.
func (t *transform) shareKeys(m map[string]string) {
	t.keys = slices.AppendSeq(t.keys[:0], maps.Keys(m))
	for _, key := range t.keys {
		value := m[key]
		delete(m, key) // or the map would keep its key
		m[t.text(key)] = value
	}
}

// text returns the text that objects share.
func (t *transform) text(s string) string {
	if shared, ok := t.texts[s]; ok {
		return shared
	}
	if len(t.texts) >= mostTexts {
		clear(t.texts)
	}
	t.texts[s] = s
	return s
}

func (t *transform) slim(obj metav1.Object) {
	managed := obj.GetManagedFields()
	if len(managed) == 0 {
		return
	}
	kept := Keep(managed)
	if len(kept) == 1 && kept[0].FieldsV1 != nil {
		kept = t.shared(&kept[0], obj.GetOwnerReferences())
	} else {
		for i := range kept {
			kept[i].FieldsType, kept[i].Time = "", nil
		}
	}
	obj.SetManagedFields(kept)
}

// shared returns the entry, of what was applied, as all objects have it that have an equal one. The UIDs
// of owners would make each different. So those that the object has are left out of the entry: then
// it has the owner references as a whole.
func (t *transform) shared(own *metav1.ManagedFieldsEntry, owners []metav1.OwnerReference) []metav1.ManagedFieldsEntry {
	fields := own.FieldsV1.GetRawBytes()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.key = t.key[:0]
	for _, text := range []string{own.Manager, own.Subresource, own.APIVersion} {
		t.key = append(append(t.key, text...), 0)
	}
	start := len(t.key)
	t.key = appendWithoutOwner(t.key, fields, owners)
	if shared, ok := t.known[string(t.key)]; ok {
		return shared
	}
	if len(t.known) >= mostKnown {
		clear(t.known) // what is in use stays shared
	}
	shared := []metav1.ManagedFieldsEntry{{
		Manager: own.Manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: own.Subresource, APIVersion: own.APIVersion,
		FieldsV1: metav1.NewFieldsV1(string(t.key[start:])),
	}}
	t.known[string(t.key)] = shared
	return shared
}

// appendWithoutOwner appends fields, in which the owner reference is replaced if the entry has one
// and the object has it, too.
func appendWithoutOwner(data, fields []byte, owners []metav1.OwnerReference) []byte {
	const before, after = `"f:ownerReferences":{`, `\"}":{}}`
	const key = `"k:{\"uid\":\"`
	for i := range owners {
		at := bytes.Index(fields, []byte(before+key))
		if at < 0 {
			break
		}
		uid := fields[at+len(before+key):]
		if rest, ok := bytes.CutPrefix(uid, []byte(owners[i].UID)); ok && bytes.HasPrefix(rest, []byte(after)) {
			data = append(data, fields[:at+len(before)]...)
			return append(append(data, '}'), rest[len(after):]...)
		}
	}
	return append(data, fields...)
}

// slimUnstructured is slim without decoding the entries that are dropped.
func (t *transform) slimUnstructured(obj *unstructured.Unstructured) {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	if len(entries) == 0 {
		return
	}
	applied := slices.DeleteFunc(slices.Clone(entries), func(e any) bool {
		entry, _ := e.(map[string]any)
		return entry["operation"] != string(metav1.ManagedFieldsOperationApply)
	})
	if len(applied) == 0 {
		delete(metadata, "managedFields")
		return
	}
	if kept := Keep(obj.GetManagedFields()); len(kept) > len(applied) {
		for i := range kept {
			kept[i].FieldsType, kept[i].Time = "", nil
		}
		obj.SetManagedFields(kept)
		return
	}
	for _, e := range applied {
		entry, _ := e.(map[string]any)
		delete(entry, "fieldsType")
		delete(entry, "time")
	}
	metadata["managedFields"] = applied
}
