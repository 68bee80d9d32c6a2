// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/internal/engine/wiring"
)

// watchLater adds a watch of a kind that the API server may not have yet. With all, all objects are
// reconciled when it begins.
func (e *Engine[T]) watchLater(b *builder.Builder, w wiring.Watch, from cache.Cache, all bool) {
	var began func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error
	if all {
		began = e.enqueueAll
	}
	// The builder adds its event filters to all other sources.
	inner := source.Kind(from, w.Object, w.Handler, e.EventFilter(), w.Filter)
	b.WatchesRawSource(&laterSource{e.options.Client.RESTMapper(), w, from, inner, began})
}

// A laterSource is the source of a kind that the API server may not have yet. It does not have the
// method WaitForSync of the inner source: a controller waits for sources with that method before it
// starts, and ends when one takes too long.
type laterSource struct {
	mapper apimeta.RESTMapper
	watch  wiring.Watch
	cache  cache.Cache
	inner  source.SyncingSource
	// began is called when the kind is known and its objects are in the cache; it may be nil.
	began func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error
}

// lookForKind is how often the API server is asked for a kind that it does not have.
const lookForKind = 10 * time.Second

// Start starts the inner source as soon as the API server has the kind. The inner source itself
// waits, too, but logs an error each time.
func (s *laterSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		err := wait.PollUntilContextCancel(ctx, lookForKind, true, func(context.Context) (bool, error) {
			_, err := s.mapper.RESTMapping(s.watch.Kind.GroupKind(), s.watch.Kind.Version)
			return err == nil, nil //nolint:nilerr // whatever the error is, it is asked again
		})
		if err != nil {
			return // the operator ends
		}
		err = errors.Join(s.watch.RegisterIndexes(s.cache), s.inner.Start(ctx, queue))
		if err == nil && s.began != nil {
			if err = s.inner.WaitForSync(ctx); err == nil {
				err = s.began(ctx, queue)
			}
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Could not start a watch", "kind", s.watch.Kind.String())
		}
	}()
	return nil
}

// enqueueAll requests a reconcile of each object.
func (e *Engine[T]) enqueueAll(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	objects, err := references.List(ctx, e.options.Client, e.resource.newObject())
	for _, obj := range objects {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
	return err
}
