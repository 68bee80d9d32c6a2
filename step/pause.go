// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// PauseAnnotation on an object has the engine leave it alone while its value is "true", also its deletion. The condition Paused says so.
const PauseAnnotation = condition.PauseAnnotation

// Reasons of the condition Paused.
const (
	ReasonPaused       = "Paused"
	ReasonInvalidPause = "InvalidValue"
)

// pause returns why an object is to be left alone; an empty reason if it is not. A value that can't be read is taken for a pause: somebody
// wanted one.
func pause(obj client.Object) (reason, message string) {
	value, ok := obj.GetAnnotations()[PauseAnnotation]
	switch {
	case !ok || strings.EqualFold(value, "false"):
		return "", ""
	case strings.EqualFold(value, "true"):
		message = fmt.Sprintf("annotation %s is %q: nothing is done until it is removed", PauseAnnotation, value)
		if !obj.GetDeletionTimestamp().IsZero() {
			message += "; the deletion waits for that, too"
		}
		return ReasonPaused, message
	default:
		return ReasonInvalidPause, fmt.Sprintf("annotation %s is %q, which is neither \"true\" nor \"false\": nothing is done until it is", PauseAnnotation, value)
	}
}

// paused says that the object is left alone, and leaves it alone: other conditions stay as they are.
func (r *run[T]) paused(ctx context.Context, reason, message string) (reconcile.Result, error) {
	if r.journal != nil {
		r.journal.Note(ctx, journal.Gated{Reason: reason, Message: message})
	}
	out := outcome{}
	if set := r.req.Conditions; set != nil {
		r.req.Object = r.read.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
		set.ResetToPaused(reason, message)
		if err := set.Store(r.req.Object); err == nil {
			out = r.save(ctx, out)
		}
	}
	if out.err != nil {
		return r.finish(ctx, journal.ResultFailed, out)
	}
	return r.finish(ctx, journal.ResultPaused, out)
}
