// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Write is a write that an Admission decides about.
type Write struct {
	// Request is the request of the write.
	Request *Request

	// Kind is the kind of the object, in the version of the request.
	Kind schema.GroupVersionKind

	// Object is the new state of the object. It is nil for a deletion.
	Object *unstructured.Unstructured

	// Old is the state of the object before. It is nil for a new object. It must not be changed.
	Old *unstructured.Unstructured

	// Mutating says that Object may be changed. It is checked afterwards. A write that is valid is
	// decided about once more, with Mutating false.
	Mutating bool
}

// An Admission decides about writes as the admission webhooks of a cluster do: it is called for each
// new, changed and deleted object, also for dry runs, first as mutating and then as validating. The
// warnings are sent to the client. An error is the answer to the request: an apierrors.APIStatus as
// it is, any other as an internal error.
//
// The server is locked during the call: an Admission must not call its methods.
type Admission func(Write) (warnings []string, err error)

// decide asks the Admission about a write.
func (w *writeContext) decide(g *registry, obj, before *unstructured.Unstructured, mutating bool) *failure {
	if g.admission == nil {
		return nil
	}
	warnings, err := g.admission(Write{Request: w.request, Kind: w.kind.gvk, Object: obj, Old: before, Mutating: mutating})
	w.warnings = append(w.warnings, warnings...)
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			err = apierrors.NewInternalError(err)
		}
		return fail(err)
	}
	if obj == nil || !mutating {
		return nil
	}
	content, failure := w.normalize(obj.Object)
	if failure == nil {
		obj.Object = content
	}
	return failure
}
