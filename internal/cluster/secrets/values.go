// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Shortest is how many bytes a value has at least that is searched for in other texts: shorter ones
// occur in them by chance.
const Shortest = 6

// Hidden is what people see instead of a value.
const Hidden = "(hidden)"

// Is reports whether an object is a Secret.
func Is(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Secret" && obj.GetAPIVersion() == "v1"
}

// Values are those of Secrets, and the parts of which they consist: the passwords in URLs, the
// texts in JSON and YAML, the lines of keys. The zero value has none. It is not safe for concurrent
// use.
type Values struct {
	list  []value
	known map[value]bool
	names map[string]bool

	byStart  map[[Shortest]byte][]pattern // what is searched for, made when it is needed
	begun    map[string]bool              // the beginnings of those starts
	squeezed map[[looseStart]byte][]value // letters and digits of the values, made when they are needed
}

// A value is one of a Secret, without white space around it.
type value struct {
	of   string // "Secret default/x, key password"
	text string
}

// Add adds the values of a Secret, and those that kubectl has applied.
func (v *Values) Add(secret *unstructured.Unstructured) {
	each(secret.DeepCopy(), func(key, text string) string {
		of := fmt.Sprintf("Secret %s/%s, key %s", secret.GetNamespace(), secret.GetName(), key)
		for _, part := range parts(text) {
			v.add(value{of, part})
		}
		return text
	})
}

// AddWhole adds a value, without the parts of which it consists: for what must not take the name of
// a host in a document for a secret.
func (v *Values) AddWhole(of, text string) { v.add(value{of, text}) }

func (v *Values) add(one value) {
	one.text = strings.TrimSpace(one.text)
	if one.text == "" || v.known[one] {
		return
	}
	if v.known == nil {
		v.known = map[value]bool{}
	}
	v.known[one] = true
	v.list = append(v.list, one)
	v.byStart, v.squeezed = nil, nil
}

// Keep makes names stay as they are, although they are also values.
func (v *Values) Keep(names ...string) {
	if v.names == nil {
		v.names = map[string]bool{}
	}
	for _, name := range names {
		v.names[name] = true
	}
	v.byStart, v.squeezed = nil, nil
}

// Rewrite replaces each value in a Secret, and in what kubectl has applied.
func Rewrite(secret *unstructured.Unstructured, with func(value string) string) {
	each(secret, func(_, text string) string { return with(text) })
}

// each replaces each value of a Secret by what a function returns for its key and the value without
// its encoding.
func each(secret *unstructured.Unstructured, with func(key, text string) string) {
	eachIn(secret.Object, with)
	annotations := secret.GetAnnotations()
	applied, ok := annotations[corev1.LastAppliedConfigAnnotation]
	if !ok {
		return
	}
	var content map[string]any
	if err := json.Unmarshal([]byte(applied), &content); err != nil {
		content = map[string]any{} // what is no JSON has no values, and is not kept
	}
	eachIn(content, with)
	text, err := json.Marshal(content)
	if err != nil {
		return // it came from JSON
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(text) + "\n"
	secret.SetAnnotations(annotations)
}

func eachIn(content map[string]any, with func(key, text string) string) {
	for _, field := range []string{"data", "stringData"} {
		entries, _ := content[field].(map[string]any)
		keys := make([]string, 0, len(entries))
		for key := range entries {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			text, ok := entries[key].(string)
			if !ok {
				text = fmt.Sprint(entries[key])
			}
			decoded, err := base64.StdEncoding.DecodeString(text)
			if field == "data" && err == nil {
				entries[key] = base64.StdEncoding.EncodeToString([]byte(with(key, string(decoded))))
				continue
			}
			entries[key] = with(key, text)
		}
	}
}

// RedactObject returns a copy of an object in which no value is left. In a Secret, all of its own are
// hidden; in other objects, those of v.
func (v *Values) RedactObject(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	if !Is(obj) {
		obj.Object, _ = v.RedactAny(obj.Object).(map[string]any) //nolint:errcheck // a map stays one
		return obj
	}
	own := &Values{names: v.names, list: slices.Clone(v.list)}
	own.Add(obj)
	for _, field := range []string{"data", "stringData"} {
		entries, _ := obj.Object[field].(map[string]any)
		for key := range entries {
			entries[key] = Hidden
		}
	}
	if annotations, ok, _ := unstructured.NestedMap(obj.Object, "metadata", "annotations"); ok { //nolint:errcheck // what is no map has none
		_ = unstructured.SetNestedField(obj.Object, own.RedactOfSecret(annotations), "metadata", "annotations") //nolint:errcheck // metadata is a map
	}
	return obj
}

// RedactOfSecret redacts what is in a Secret outside of its data, of which v has the values: also what
// is nothing but a value, of any length, and what kubectl has applied.
func (v *Values) RedactOfSecret(content any) any {
	switch c := content.(type) {
	case map[string]any:
		out := make(map[string]any, len(c))
		for key, child := range c {
			if out[key] = v.RedactOfSecret(child); key == corev1.LastAppliedConfigAnnotation {
				out[key] = Hidden
			}
		}
		return out
	case string:
		text := strings.TrimSpace(c)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if text != "" && slices.ContainsFunc(v.list, func(one value) bool {
			return one.text == text || err == nil && one.text == strings.TrimSpace(string(decoded))
		}) {
			return Hidden
		}
	}
	return v.RedactAny(content)
}
