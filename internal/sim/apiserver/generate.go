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
	// A Job without labels gets those of its template, also the ones that the server generates there.
	unlabeled := w.kind.storage == jobsStorage && len(obj.GetLabels()) == 0 && len(templateLabels(obj)) > 0
	w.prepareCreate(obj)
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
	w.lacksDefaults = w.kind.storage == claimsStorage || w.kind.storage == jobsStorage && len(obj.GetLabels()) == 0
	w.completeCreate(g, obj)
	w.define()
	w.kind.protect(obj)
	if unlabeled {
		obj.SetLabels(templateLabels(obj))
	}
	return nil
}

func templateLabels(job *unstructured.Unstructured) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(job.Object, "spec", "template", "metadata", "labels")
	return maps.Clone(labels)
}
