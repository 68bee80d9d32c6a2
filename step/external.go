// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// External returns a step for something outside the cluster, such as a bucket or a DNS record.
// Ensure makes it what the spec wants, remove removes it when the object is deleted. Before ensure,
// the step asks [Request.EnsureFresh]: an object that is gone, or being deleted, without the cache
// knowing yet must not make again what nothing would remove.
//
// Ensure must find what it has made before: by a name that is computed from the object's, or by an
// id that was saved before anything was made. Remove must not fail when there is nothing to remove.
// Nothing watches what is outside: return ctrlkit.ContinueAndRequeueAfter from ensure to find out what
// others have changed.
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
