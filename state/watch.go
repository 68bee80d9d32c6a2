// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
// The index leaves out Where, FieldWhere and Annotations of the selections, which no object
// determines: see the parameter only of [Enqueue].
func TargetIndex[T client.Object](name string, sel func(T) (Selection, error)) Index[T] {
	return Index[T]{Name: name, Values: func(target T) []string {
		selection, err := sel(target)
		if err != nil {
			return nil
		}
		selection.Where, selection.FieldWhere, selection.Annotations = nil, nil, nil
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

// NamesIndex is [NameIndex] for a state with an object for each element of a list.
func NamesIndex[T client.Object](name string, sel func(T) ([]Selection, error)) Index[T] {
	return Index[T]{Name: name, Values: func(target T) []string {
		each, err := sel(target)
		if err != nil {
			return nil
		}
		var keys []string
		for _, s := range each {
			keys = append(keys, Selection{Namespace: s.Namespace, Name: s.Name}.Key())
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	}}
}

// Enqueue returns a handler that enqueues the targets which select a changed object, or selected it
// before the change.
//
//   - Targets whose [Selection] equals offer(obj) select obj, so offer must set the same fields as
//     the function that [TargetIndex] was given, without Where, FieldWhere and Annotations.
//   - Objects that do not satisfy Where and Annotations of each selection in only are ignored. What
//     depends on the target cannot be in it: then the targets that match otherwise are enqueued.
//   - The handler lists the targets with reader, which must read from a cache with the index. If
//     that fails, it logs the error and enqueues all targets.
//   - The parameter targets is an empty list of the targets' kind.
//   - If reader is a [HandlerWrapper], Enqueue returns the handler wrapped.
func Enqueue[T, O client.Object](reader client.Reader, targets client.ObjectList, index Index[T], offer func(O) Selection, only ...Selection) handler.EventHandler {
	return EnqueueFrom(reader, Targets(reader, targets, index, offer), only...)
}

// EnqueueFrom is [Enqueue] with a function that finds the targets of an object: see [Targets] and
// [Through].
func EnqueueFrom(reader client.Reader, find handler.MapFunc, only ...Selection) handler.EventHandler {
	h := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		if slices.ContainsFunc(only, func(s Selection) bool {
			return !hold(s.Where, obj.GetLabels()) || !hold(s.Annotations, obj.GetAnnotations())
		}) {
			return nil
		}
		return find(ctx, obj)
	})
	if wrapper, ok := reader.(HandlerWrapper); ok {
		return wrapper.WrapHandler(h)
	}
	return h
}

// Targets returns a function that finds the targets which select an object, as [Enqueue] does.
func Targets[T, O client.Object](reader client.Reader, targets client.ObjectList, index Index[T], offer func(O) Selection) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		find(ctx, reader, targets, index, offer, obj, func(target client.Object) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(target)})
		})
		return requests
	}
}

// Through returns a function that finds the targets which select an object through another state.
// The index is that of the objects of the other state by what they select, via an empty list of
// them, and next finds the targets that select one of them.
func Through[V, O client.Object](reader client.Reader, via client.ObjectList, index Index[V], offer func(O) Selection, next handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		find(ctx, reader, via, index, offer, obj, func(between client.Object) { requests = append(requests, next(ctx, between)...) })
		return requests
	}
}

// ThroughOwner is [Through] for objects that the object of the other state controls: the
// controlling owner of an object, if it is of this group and kind, in any version. The parameter
// owner is an empty object of that kind, which is namespaced.
func ThroughOwner(reader client.Reader, owner client.Object, group, kind string, next handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		for _, name := range ControllerName(obj, group, kind) {
			key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}
			between, ok := owner.DeepCopyObject().(client.Object)
			if !ok {
				return nil
			}
			err := reader.Get(ctx, key, between)
			if err == nil {
				return next(ctx, between)
			}
			if !apierrors.IsNotFound(err) { // without an owner, nothing is selected
				log.FromContext(ctx).Error(err, "Reading the owner of a changed object", "owner", key, "kind", kind)
			}
		}
		return nil
	}
}

// A HandlerWrapper is a reader that wraps event handlers as well, in order to record the cause of
// each request. Engine.WatchReader of package step returns one.
type HandlerWrapper interface {
	// WrapHandler returns a handler that enqueues what h enqueues, and records why. It is called
	// once for each handler.
	WrapHandler(h handler.EventHandler) handler.EventHandler
}

// find calls found for each object of the kind of list that selects obj by an index. The object
// found belongs to the cache. If the look-up fails, it calls found for all objects of the kind.
func find[T, O client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, index Index[T], offer func(O) Selection, obj client.Object,
	found func(client.Object),
) {
	typed, ok := obj.(O)
	if !ok {
		return
	}
	err := each(ctx, reader, list, found, client.MatchingFields{index.Name: offer(typed).Key()})
	if err == nil {
		return
	}
	logger := log.FromContext(ctx).WithValues("index", index.Name, "object", client.ObjectKeyFromObject(obj))
	logger.Error(err, "Looking up the targets of a changed object; reconciling all of them")
	if err := each(ctx, reader, list, found); err != nil {
		logger.Error(err, "Listing all targets of a changed object")
	}
}

// each calls do for each object that the options select, unless there is an error. The objects are
// not copied.
func each(ctx context.Context, reader client.Reader, empty client.ObjectList, do func(client.Object), opts ...client.ListOption) error {
	list, ok := empty.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("%T is not a list of objects", empty)
	}
	if err := reader.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", item)
		}
		do(obj)
		return nil
	})
}
