// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
)

// Hide replaces all values of Secrets, in the Secrets and wherever else they occur: in other
// objects, in the reports and in the head. others are Secrets that are not recorded, of which
// recorded objects may have values. Equal values get equal stand-ins of the same length. What a
// file is left with, because it is also a name, is named in the head, and so is what it may be left
// with in a form that is not known.
//
// Package secrets says in which forms a value is found. A part of a value is not, nor is a value of
// fewer than six bytes outside of Secrets.
func (r *Recording) Hide(others []*unstructured.Unstructured) {
	h := &hider{standIns: standIns{key: make([]byte, 32)}}
	rand.Read(h.key) //nolint:errcheck // it never fails
	h.values.Keep(r.names()...)
	for _, obj := range slices.Concat(r.Objects, others) {
		if secrets.Is(obj) {
			h.values.Add(obj)
		}
	}
	for _, obj := range r.Objects {
		if secrets.Is(obj) {
			secrets.Rewrite(obj, h.of)
		}
		obj.Object, _ = h.anywhere(obj.Object).(map[string]any)
	}
	for i, report := range r.Reports {
		r.Reports[i], _ = h.anywhere(report).(map[string]any)
	}
	for i, text := range r.Unread {
		r.Unread[i] = h.values.Replace(text, h.of)
	}
	trace := h.values.Trace(r.texts())
	r.Left, r.Unsure = trace.Named, trace.Unsure
}

// names returns the texts by which objects refer to others. They stay as they are.
func (r *Recording) names() []string {
	var names []string
	for _, obj := range r.Objects {
		names = append(names,
			obj.GetName(), obj.GetNamespace(), obj.GetKind(), obj.GetAPIVersion(), obj.GroupVersionKind().Group, string(obj.GetUID()))
	}
	return names
}

// hider replaces values.
type hider struct {
	standIns
	values secrets.Values
}

// anywhere replaces values in what may have them by chance. Keys that could be names of fields stay.
func (h *hider) anywhere(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if !secrets.IsWord(key) {
				key = h.values.Replace(key, h.of)
			}
			out[key] = h.anywhere(child)
		}
		return out
	case []any:
		for i, child := range v {
			v[i] = h.anywhere(child)
		}
	case string:
		return h.values.Replace(v, h.of)
	case int64:
		if n, err := strconv.ParseInt(h.values.Replace(strconv.FormatInt(v, 10), h.of), 10, 64); err == nil {
			return n
		}
	}
	return value
}

// texts returns all texts of a recording, and all keys.
func (r *Recording) texts() []string {
	texts := slices.Clone(r.Unread)
	for _, obj := range r.Objects {
		texts = appendTexts(texts, obj.Object)
	}
	for _, report := range r.Reports {
		texts = appendTexts(texts, report)
	}
	return texts
}

func appendTexts(texts []string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			texts = appendTexts(append(texts, key), child)
		}
	case []any:
		for _, child := range v {
			texts = appendTexts(texts, child)
		}
	case nil, bool:
	default:
		texts = append(texts, fmt.Sprint(v))
	}
	return texts
}
