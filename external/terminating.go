// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// notConnected returns the failure of Connect, with its remedy. In a namespace that is being deleted,
// nothing can be created: credentials that are gone can't be given back.
func (e *external[T]) notConnected(ctx context.Context, req *step.Request[T], err error) error {
	err = fmt.Errorf("connecting: %w", err)
	c, obj := failure.Classify(err), req.Object
	if obj.GetDeletionTimestamp().IsZero() || !e.isTerminating(ctx, req) {
		return failure.AppendRemedy(err)
	}
	why := fmt.Sprintf("namespace %s is being deleted, so that nothing can be created in it any more", obj.GetNamespace())
	if id := IDOf(obj); id != "" {
		why += fmt.Sprintf(": without its credentials, the resource %s can only be left, and then stays in the system until a person deletes it there", id)
	}
	_, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err)
	switch waits := ctrlkit.Waits(err); {
	case failed == nil && len(waits) > 0:
		return waitsWith(waits, why)
	case c.Class == failure.ClassNotFound:
		return failure.Mark(fmt.Errorf("%w; %s", err, why), failure.WithRemedy(why))
	}
	return remediable(failure.AppendRemedy(err), why)
}

// isTerminating reports whether the namespace of an object is being deleted, as the cache has it, which
// the policies need anyway. It is not known if they are ignored.
func (e *external[T]) isTerminating(ctx context.Context, req *step.Request[T]) bool {
	name := req.Object.GetNamespace()
	if name == "" || e.options.Policy.IgnoreNamespaces {
		return false
	}
	namespace := &corev1.Namespace{}
	return req.Client.Get(ctx, client.ObjectKey{Name: name}, namespace) == nil && !namespace.DeletionTimestamp.IsZero()
}
