// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TargetIndex returns the index of targets by what they select. [Enqueue] finds the targets of a
// changed object with it. A target for which sel returns an error selects nothing. See [Index] for
// the name.
//
// The index leaves out Where and Annotations of the selections, which no object determines: see the
// parameter only of [Enqueue].
func TargetIndex[T client.Object](name string, sel func(T) (Selection, error)) Index[T] {
	return Index[T]{Name: name, Values: func(target T) []string {
		selection, err := sel(target)
		if err != nil {
			return nil
		}
		selection.Where, selection.Annotations = nil, nil
		return []string{selection.Key()}
	}}
}

// NameIndex is [TargetIndex] for a state that is a single object selected by name. It uses only the
// namespace and the name of the selection, and so must the function offer of [Enqueue].
//
// The other selectors are left out because an object of that name which does not satisfy them makes
// [Get] fail: the target must be reconciled when that object changes.
func NameIndex[T client.Object](name string, sel func(T) (Selection, error)) Index[T] {
	return TargetIndex(name, func(target T) (Selection, error) {
		selection, err := sel(target)
		return Selection{Namespace: selection.Namespace, Name: selection.Name}, err
	})
}

// Enqueue returns a handler that enqueues the targets which select a changed object, or selected it
// before the change.
//
//   - Targets whose [Selection] equals offer(obj) select obj, so offer must set the same fields as
//     the function that [TargetIndex] was given, without Where and Annotations.
//   - Objects that do not satisfy Where and Annotations of each selection in only are ignored. What
//     depends on the target cannot be in it: then the targets that match otherwise are enqueued.
//   - The handler lists the targets with reader, which must read from a cache with the index. If
//     that fails, it logs the error and enqueues all targets.
//   - The parameter targets is an empty list of the targets' kind.
//   - If reader is a [HandlerWrapper], Enqueue returns the handler wrapped.
func Enqueue[T, O client.Object](reader client.Reader, targets client.ObjectList, index Index[T], offer func(O) Selection, only ...Selection) handler.EventHandler {
	h := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		typed, ok := obj.(O)
		if !ok || slices.ContainsFunc(only, func(s Selection) bool {
			return !hold(s.Where, obj.GetLabels()) || !hold(s.Annotations, obj.GetAnnotations())
		}) {
			return nil
		}
		requests, err := requestsFor(ctx, reader, targets, client.MatchingFields{index.Name: offer(typed).Key()})
		if err == nil {
			return requests
		}
		logger := log.FromContext(ctx).WithValues("index", index.Name, "object", client.ObjectKeyFromObject(obj))
		logger.Error(err, "Looking up the targets of a changed object; reconciling all of them")
		if requests, err = requestsFor(ctx, reader, targets); err != nil {
			logger.Error(err, "Listing all targets of a changed object")
		}
		return requests
	})
	if wrapper, ok := reader.(HandlerWrapper); ok {
		return wrapper.WrapHandler(h)
	}
	return h
}

// A HandlerWrapper is a reader that wraps event handlers as well, in order to record the cause of
// each request. Engine.WatchReader of package step returns one.
type HandlerWrapper interface {
	// WrapHandler returns a handler that enqueues what h enqueues, and records why. It is called
	// once for each handler.
	WrapHandler(h handler.EventHandler) handler.EventHandler
}

// requestsFor returns a request for each target that the options select. It reads names only, so
// nothing has to be copied.
func requestsFor(ctx context.Context, reader client.Reader, targets client.ObjectList, opts ...client.ListOption) ([]reconcile.Request, error) {
	list, ok := targets.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", targets)
	}
	if err := reader.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	var requests []reconcile.Request
	err := meta.EachListItem(list, func(item runtime.Object) error {
		target, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{
			Namespace: target.GetNamespace(), Name: target.GetName(),
		}})
		return nil
	})
	return requests, err
}
