// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/policy"
)

// publish writes the connection details to their Secret, or to the targets of the publisher: those of the
// observation, and what the system has returned only once. Partial says that the observation follows.
func (s *session[T]) publish(ctx context.Context, partial bool) error {
	obj, name, publisher := s.req.Object, "", s.options.Publish
	if s.options.ConnectionSecret != nil {
		name = s.options.ConnectionSecret(obj)
	}
	details := Details{Values: s.seen.Connection, Once: s.memory.get(obj.GetUID()).once, first: s.first, partial: partial}
	if len(details.Once) > 0 && name == "" && (publisher == nil || !publisher.keeps(obj)) {
		s.req.Event(corev1.EventTypeWarning, reasonUnpublished, "Create", "What the system has returned only once is lost, because no Secret is named for it: %s",
			strings.Join(slices.Sorted(maps.Keys(details.Once)), ", "))
		s.memory.change(obj.GetUID(), func(a *attempt) { a.once = nil })
		details.Once = nil
	}
	var err error
	if name != "" {
		err = keepSecret(ctx, s, name, details)
	}
	if publisher != nil {
		err = errors.Join(err, publisher.Publish(ctx, s.req, details))
	}
	if err != nil {
		return fmt.Errorf("publishing the connection details: %w", err)
	}
	return nil
}

// keepSecret publishes details to the Secret, unless it is as it was left, and they are the same.
func keepSecret[T client.Object](ctx context.Context, s *session[T], name string, details Details) error {
	uid := s.req.Object.GetUID()
	if left := s.memory.get(uid).published; left != 0 {
		secret := &corev1.Secret{}
		err := s.req.Client.Get(ctx, client.ObjectKey{Namespace: s.req.Object.GetNamespace(), Name: name}, secret, client.UnsafeDisableDeepCopy)
		if err == nil && s.memory.hashOf(secret, details) == left {
			return nil
		}
	}
	secret, err := publishSecret(ctx, s.req, name, details)
	if err == nil && secret != nil {
		s.memory.change(uid, func(a *attempt) { a.published = s.memory.hashOf(secret, details) })
	}
	return err
}

// publishOnce publishes what Create has returned. It may not be asked for again.
func (s *session[T]) publishOnce(ctx context.Context) error {
	if len(s.memory.get(s.req.Object.GetUID()).once) == 0 {
		return nil
	}
	return s.publish(ctx, true)
}

// shareObserved does for an object that may not change its resource what changes nothing outside. The
// connection details of another object's resource are not published: who may create objects could
// read them.
func shareObserved[T client.Object](ctx context.Context, s *session[T]) error {
	switch {
	case s.seen.State != UpToDate && s.seen.State != Drifted:
		return nil
	case s.decision.next != nextManage && s.decision.next != nextClaim && s.decision.next != nextShow:
		return nil
	}
	if _, err := s.lateInitialize(ctx); err != nil {
		return err
	}
	return s.publish(ctx, false)
}

// lateInitialize writes to the spec what the system has chosen, and reports whether it has: then
// the object is another one, and the reconcile that follows sees it.
func (s *session[T]) lateInitialize(ctx context.Context) (bool, error) {
	late, ok := s.client.(LateInitializer[T])
	if !ok || !PolicyOf(s.req).Allows(policy.VerbLateInitialize) {
		return false, nil
	}
	before := s.req.Object
	after := before.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	late.LateInitialize(after)
	if reflect.DeepEqual(before, after) {
		return false, nil
	}
	if err := s.req.Save(ctx); err != nil { // the patch has a newer version
		return false, err
	}
	from, to := before.DeepCopyObject().(T), before.DeepCopyObject().(T) //nolint:errcheck // copies have the type
	late.LateInitialize(to)
	if err := s.req.Client.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("writing what the system has chosen: %w", err)
	}
	err := ctrlkit.Poll("the fields that the system has chosen", s.options.Busy)
	return true, err
}
