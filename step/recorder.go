// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/text"
)

// A recorder is the recorder of an engine, for all that record an event. The API server refuses a
// note that is too long, and client-go drops the event. Equal events are one series of client-go
// only if they regard the same version of an object, so they regard none.
type recorder struct{ events.EventRecorder }

// Eventf implements [events.EventRecorder].
func (r recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(versionless(regarding), versionless(related), eventType, reason, action, "%s", text.Shorten(fmt.Sprintf(note, args...), text.Longest))
}

// versionless returns a copy of an object, or of a reference to one, without its resource version.
func versionless(obj runtime.Object) runtime.Object {
	switch o := obj.(type) {
	case nil:
		return nil
	case *corev1.ObjectReference:
		ref := *o
		ref.ResourceVersion = ""
		return &ref
	case client.Object:
		shown := o.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
		shown.SetResourceVersion("")
		return shown
	default:
		return obj
	}
}
