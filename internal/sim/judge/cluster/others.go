// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// AnothersLabels are the labels of objects that another client has created.
func AnothersLabels() map[string]any { return map[string]any{"app": "another"} }

// ForeignController returns a controller of another object, and the path of its kind. It does
// nothing, and few operators watch its kind.
func ForeignController(of *unstructured.Unstructured) (collection string, content map[string]any) {
	metadata := map[string]any{"name": "controller-of-" + of.GetName(), "annotations": map[string]any{Foreign: "true"}}
	if of.GetNamespace() == "" { // what is outside of namespaces can't be owned by what is inside
		return "/apis/rbac.authorization.k8s.io/v1/clusterroles", map[string]any{"metadata": metadata}
	}
	metadata["namespace"] = of.GetNamespace()
	return "/api/v1/namespaces/" + of.GetNamespace() + "/replicationcontrollers", map[string]any{
		"metadata": metadata,
		"spec": map[string]any{"replicas": 0, "selector": AnothersLabels(), "template": map[string]any{
			"metadata": map[string]any{"labels": AnothersLabels()},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "another", "image": "another"}}},
		}},
	}
}

// formerUID takes the place of the UIDs of owners in an orphan: its owner was another one.
const formerUID = "0f0f0f0f-0000-4000-8000-000000000000"

// LeftBehind returns an object as it is after its owners were deleted with --cascade=orphan:
// without them and their UIDs.
func LeftBehind(wanted *unstructured.Unstructured) map[string]any {
	left := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(wanted.Object)}
	for _, reference := range wanted.GetOwnerReferences() {
		replaceStrings(left.Object, string(reference.UID), formerUID)
	}
	metadata := map[string]any{}
	had, _ := left.Object["metadata"].(map[string]any)
	for _, k := range []string{"name", "generateName", "namespace", "labels", "annotations"} {
		if v, ok := had[k]; ok {
			metadata[k] = v
		}
	}
	left.Object["metadata"] = metadata
	delete(left.Object, "status")
	return left.Object
}

// replaceStrings replaces a text in all strings of a JSON value, but not in the keys of maps.
func replaceStrings(value any, before, after string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, before, after)
	case map[string]any:
		for k := range v {
			v[k] = replaceStrings(v[k], before, after)
		}
	case []any:
		for i := range v {
			v[i] = replaceStrings(v[i], before, after)
		}
	}
	return value
}
