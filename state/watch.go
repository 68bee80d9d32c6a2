// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TargetIndex returns the index by which Enqueue finds the targets that a changed object concerns:
// the index of targets by what they select. A target for which sel returns an error selects
// nothing. See Index about the name.
func TargetIndex[T client.Object](name string, sel func(T) (Selection, error)) Index[T] {
	return Index[T]{Name: name, Values: func(target T) []string {
		selection, err := sel(target)
		if err != nil {
			return nil
		}
		return []string{selection.Key()}
	}}
}

// NameIndex is TargetIndex for a state that is a single object selected by name: it looks at the
// namespace and the name of the selection alone. An object of that name which does not satisfy the
// other selectors is an error of the target, and only an event of that object tells when this is
// over. The offer of Enqueue then sets the namespace and the name alone.
func NameIndex[T client.Object](name string, sel func(T) (Selection, error)) Index[T] {
	return TargetIndex(name, func(target T) (Selection, error) {
		selection, err := sel(target)
		return Selection{Namespace: selection.Namespace, Name: selection.Name}, err
	})
}

// Enqueue returns a handler that enqueues the targets which select a changed object, or selected it
// before the change.
//
// An object is selected by the targets whose Selection is equal to offer of the object, so offer
// must set the fields that the function given to TargetIndex sets. The targets are looked up with
// reader, which has to read from a cache with the index; if that fails, all targets are enqueued,
// and the error is logged. Targets is an empty list of them. A reader that is a [HandlerWrapper] is told of
// each request.
func Enqueue[T, O client.Object](reader client.Reader, targets client.ObjectList, index Index[T], offer func(O) Selection) handler.EventHandler {
	h := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		typed, ok := obj.(O)
		if !ok {
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
	if teller, ok := reader.(HandlerWrapper); ok {
		return teller.WrapHandler(h)
	}
	return h
}

// A Teller is a reader that also wants to know which change has asked for which reconcile, such as
// that of an engine of package step (Engine.WatchReader).
type HandlerWrapper interface {
	// WrapHandler returns h so that it tells.
	WrapHandler(h handler.EventHandler) handler.EventHandler
}

// requestsFor returns a request for each target that the options select. It only reads names, so
// that nothing needs to be copied.
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
