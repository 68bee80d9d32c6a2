// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// External returns a step for something outside the cluster, such as a bucket or a DNS record.
//
// Ensure is called for objects that are not being deleted, and makes the thing what the spec wants:
//
//   - It must find what it has made before: by a name that is computed from the object's, or by an
//     id that was saved before anything was made.
//   - Before it, the step calls [Request.EnsureFresh]. Otherwise an object that is gone, which a
//     stale cache still shows, could make again what nothing would remove.
//   - Nothing watches what is outside: return ctrlkit.ContinueAndRequeueAfter to find out what
//     others have changed.
//
// Remove is called when the object is deleted. It must not fail when there is nothing to remove.
func External[T client.Object](name string, ensure, remove func(ctx context.Context, req *Request[T]) (ctrl.Result, error)) Cleaner[T] {
	return external[T]{funcStep[T]{name, ensure}, remove}
}

type external[T client.Object] struct {
	funcStep[T]
	remove func(ctx context.Context, req *Request[T]) (ctrl.Result, error)
}

func (e external[T]) Do(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
	if err := req.EnsureFresh(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return e.do(ctx, req)
}

func (e external[T]) Cleanup(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
	return e.remove(ctx, req)
}
