// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "k8s.io/apimachinery/pkg/runtime/schema"

// eventNames are the fields of Kubernetes events that are called otherwise in core/v1 and in
// events.k8s.io/v1. An event is stored as it was written, and shown as it is asked for.
var eventNames = []struct{ core, events string }{
	{"involvedObject", "regarding"},
	{"message", "note"},
	{"reportingComponent", "reportingController"},
	{"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"},
	{"count", "deprecatedCount"},
}

// renameEvent gives the fields of an event the names that they have in another group. content is a copy
// of its own.
func renameEvent(content map[string]any, gvk schema.GroupVersionKind) {
	for _, name := range eventNames {
		from, to := name.core, name.events
		if gvk.Group == "" {
			from, to = to, from
		}
		if value, ok := content[from]; ok {
			delete(content, from)
			content[to] = value
		}
	}
}

// contentAs returns the content of a version as a kind shows it.
func (v *version) contentAs(k *kind) map[string]any {
	if k.storage == eventsStorage {
		return convert(v.content, k.gvk)
	}
	return v.content
}
