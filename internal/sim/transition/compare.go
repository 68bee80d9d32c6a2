// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// builtin are groups of kinds whose status other controllers write.
var builtin = []string{"", "apps", "batch", "autoscaling", "policy"}

// Forget removes from an object of a group what says how it came to be as it is: it differs between
// an object that was changed and one that was created. That is the status of a built-in kind, the
// revision of a Deployment, and reasons and messages of conditions.
func Forget(group string, content map[string]any) {
	if slices.Contains(builtin, group) || strings.HasSuffix(group, ".k8s.io") {
		delete(content, "status")
	}
	if status := track.Trimmed(content["status"]); status != nil {
		content["status"] = status // an empty message says no more than none
	} else {
		delete(content, "status")
	}
	unstructured.RemoveNestedField(content, "metadata", "annotations", "deployment.kubernetes.io/revision")
	if annotations, _, _ := unstructured.NestedMap(content, "metadata", "annotations"); len(annotations) == 0 {
		unstructured.RemoveNestedField(content, "metadata", "annotations")
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(content, "status", "conditions")
	list, _ := conditions.([]any)
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok {
			delete(condition, "reason")
			delete(condition, "message")
		}
	}
}

// Fails reports whether an operator can't do what an object asks for that was changed in a way: the
// cluster lacks what it has without the change. Both clusters are given by what is in them, and
// isSample reports whether that is an object of users.
func Fails[V any](kind Kind, before, changed map[string]V, isSample func(thing string) bool) bool {
	own, lacking := 0, 0
	for thing := range before {
		if isSample(thing) {
			continue
		}
		own++
		if _, ok := changed[thing]; !ok {
			lacking++
		}
	}
	return lacking > 0 && (kind == Wrong || lacking == own)
}

// Unreported says that a mistake is not reported.
func (c Change) Unreported() string {
	return fmt.Sprintf("an object with %s has nothing of what it has without it, and neither its status nor an Event says why", c.Name)
}

// Reported reports whether the status of an object says something, in a cluster with some objects,
// or an Event about it. That a generation was observed says nothing.
func Reported(cluster []map[string]any, object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(cluster, func(content map[string]any) bool {
		other := unstructured.Unstructured{Object: content}
		if other.GetKind() == "Event" {
			name, _, _ := unstructured.NestedString(content, "involvedObject", "name")
			regarding, _, _ := unstructured.NestedString(content, "regarding", "name")
			return name == object.GetName() || regarding == object.GetName()
		}
		if other.GetKind() != object.GetKind() || other.GetName() != object.GetName() || other.GroupVersionKind().Group != object.GroupVersionKind().Group {
			return false
		}
		status, _ := track.Trimmed(content["status"]).(map[string]any)
		_, observed := status["observedGeneration"]
		return len(status) > 1 || len(status) == 1 && !observed
	})
}
