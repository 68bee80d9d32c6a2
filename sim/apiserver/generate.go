// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var jobsStorage = schema.GroupResource{Group: "batch", Resource: "jobs"}

// prepareNew does what is done upstream with a new object before it is validated. applied is the
// configuration from which server-side apply made the object, which has tracked its fields already.
func (w *writeContext) prepareNew(g *registry, obj, applied *unstructured.Unstructured) *failure {
	w.prepareCreate(obj)
	unlabeled := w.kind.storage == jobsStorage && defaultJob(obj)
	// As upstream, the client does not become the manager of what the server adds from here on:
	// addresses, labels, tolerations, finalizers.
	if applied == nil {
		if failure := w.trackUpdate(g, nil, obj); failure != nil {
			return failure
		}
	}
	if failure := w.admit(g, obj, nil); failure != nil {
		return failure
	}
	w.completeCreate(g, obj)
	w.kind.protect(obj)
	if unlabeled {
		obj.SetLabels(templateLabels(obj))
	}
	return nil
}

// defaultJob sets defaults of a Job, and reports whether it has no labels of its own. Such a Job
// gets those of its template, also the ones that the server generates there.
func defaultJob(job *unstructured.Unstructured) (unlabeled bool) {
	spec, ok := job.Object["spec"].(map[string]any)
	if !ok {
		return false
	}
	if spec["manualSelector"] == nil {
		spec["manualSelector"] = false
	}
	if len(job.GetLabels()) > 0 {
		return false
	}
	if labels := templateLabels(job); len(labels) > 0 {
		job.SetLabels(labels)
	}
	return true
}

func templateLabels(job *unstructured.Unstructured) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(job.Object, "spec", "template", "metadata", "labels")
	return maps.Clone(labels)
}
